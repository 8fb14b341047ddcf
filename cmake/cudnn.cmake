# Finds cuDNN 9.8 or newer (9.8 is the first that can plan for a GPU from its description) and its C++ frontend.
#   RK_HAS_CUDNN            ON if both are found and device code is built
#   RK_CUDNN_ABSENT         otherwise the reason
#   RK_CUDNN_OPTIONS        compile options of the files in folders named cudnn; only these see cuDNN
# Searches the system, the CUDA toolkit, and the folder of tools/scripts/setup_cudnn.sh. The library is
# loaded when it is first needed, so nothing is linked.

set(RK_HAS_CUDNN OFF)
set(RK_CUDNN_ABSENT "")
set(fetched ${CMAKE_BINARY_DIR}/third_party)

if(RK_HAS_CUDA)
  find_path(RK_CUDNN_INCLUDE cudnn_version.h
    HINTS ${CUDAToolkit_INCLUDE_DIRS} ${fetched}/nvidia/cudnn/include)
  find_file(RK_CUDNN_LIBRARY libcudnn.so.9
    HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib ${CUDAToolkit_LIBRARY_ROOT}/lib64
      ${fetched}/nvidia/cudnn/lib
    PATHS /usr/lib /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE})
  find_path(RK_CUDNN_FRONTEND cudnn_frontend.h HINTS ${fetched}/include)
endif()

# rk_header_version(VARIABLE FILE PREFIX SUFFIX): reads the version from the #defines of a header.
function(rk_header_version variable file prefix suffix)
  set(version "")
  foreach(part MAJOR MINOR)
    file(STRINGS ${file} line REGEX "define ${prefix}_${part}${suffix} [0-9]+")
    string(REGEX MATCH "[0-9]+$" number "${line}")
    list(APPEND version "${number}")
  endforeach()
  list(JOIN version . version)
  set(${variable} ${version} PARENT_SCOPE)
endfunction()

if(NOT RK_HAS_CUDA)
  set(RK_CUDNN_ABSENT "no GPU code is built")
elseif(NOT RK_CUDNN_INCLUDE OR NOT RK_CUDNN_LIBRARY)
  set(RK_CUDNN_ABSENT "cuDNN 9 was not found; tools/scripts/setup_cudnn.sh ${fetched} library fetches it")
elseif(NOT RK_CUDNN_FRONTEND)
  set(RK_CUDNN_ABSENT "cuDNN's frontend was not found; tools/scripts/setup_cudnn.sh ${fetched} fetches it")
else()
  rk_header_version(cudnn ${RK_CUDNN_INCLUDE}/cudnn_version.h CUDNN "")
  rk_header_version(frontend ${RK_CUDNN_FRONTEND}/cudnn_frontend_version.h CUDNN_FRONTEND _VERSION)
  if(cudnn VERSION_LESS 9.8)
    set(RK_CUDNN_ABSENT "cuDNN ${cudnn} is older than 9.8")
  # From 1.18 on the frontend requests the sums of a convolution in the wrong type, and all types but
  # fp16 are refused; versions before 1.15 are untested.
  elseif(frontend VERSION_LESS 1.15 OR frontend VERSION_GREATER_EQUAL 1.18)
    set(RK_CUDNN_ABSENT "cuDNN's frontend ${frontend} is not one of 1.15 to 1.17")
  endif()
endif()

if(NOT RK_CUDNN_ABSENT STREQUAL "")
  if(RK_HAS_CUDA)
    message(STATUS "No cuDNN: ${RK_CUDNN_ABSENT}")
  endif()
  return()
endif()
set(RK_HAS_CUDNN ON)
message(STATUS "cuDNN: ${cudnn}, frontend ${frontend}")

# -O1: compiling the frontend's headers takes twice as long at -O3, and no code in them runs in a step.
rk_system_headers(cudnn_headers ${CUDAToolkit_INCLUDE_DIRS} ${RK_CUDNN_INCLUDE} ${RK_CUDNN_FRONTEND})
set(RK_CUDNN_OPTIONS ${cudnn_headers} -O1 -DNV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
  -DCUDNN_FRONTEND_SKIP_JSON_LIB)
