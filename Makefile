# Only forwards to CMake: CMakeLists.txt alone describes the build. `make help` lists the targets.
PRESET ?= release
# A folder for each preset: what one sets would stay in the cache of another.
BUILD ?= build$(if $(filter-out release,$(PRESET)),-$(PRESET))
JOBS ?= $(shell nproc)
GOLDENS ?= tests/golden
LOSS ?= smooth_ap
# Options that are not given stay as the build folder has them.
WERROR ?= $(if $(CI),ON)
OPTIONS ?=
# Whether GPU code is built: as OPTIONS say, otherwise as the build folder has it. Without, nothing is fetched for it.
CUDA = $(or $(patsubst -DRK_CUDA=%,%,$(lastword $(filter -DRK_CUDA=%,$(subst RK_CUDA:STRING=,RK_CUDA=,$(OPTIONS))))), \
  $(shell sed -n 's/^RK_CUDA:[A-Z]*=//p' "$(BUILD)/CMakeCache.txt" 2>/dev/null))
PREFIX ?= /usr/local

# Piece of `make gpu-proof`.
PIECE ?= all

# Kills of `make test-kills` in each configuration.
KILLS ?= 100

# Seconds of `make fuzz` for all targets together.
SECONDS ?= 600

# Two targets would build in one folder at once; each uses all JOBS by itself.
.NOTPARALLEL:
.PHONY: all configure setup demo install deb test test-golden test-gpu test-sanitizers test-kills test-faults fuzz \
  bench gpu-proof gpu-package profile-step profile-loss format lint help

all: configure
	@cmake --build "$(BUILD)" --target programs -j $(JOBS)

setup:
	@tools/scripts/setup.sh
	@$(if $(filter OFF,$(CUDA)),,tools/scripts/setup_cudnn.sh "$(BUILD)/third_party")

configure: setup
	@mkdir -p "$(BUILD)"
	@cmake --preset $(PRESET) -B "$(BUILD)" $(if $(WERROR),-DRK_WERROR=$(WERROR)) $(OPTIONS) \
	  >"$(BUILD)/configure.log" 2>&1 || \
	  { cat "$(BUILD)/configure.log"; exit 1; }

demo: configure
	@cmake --build "$(BUILD)" --target train eval -j $(JOBS)
	@tools/scripts/demo.sh "$(BUILD)"

# Builds only if nothing is built yet: `make && sudo make install` must leave no files of root's here. Others
# must be able to enter the folders, whatever the user's umask is.
install:
	@[ -e "$(BUILD)/man/rankine-bench.1" ] || [ -z "$$SUDO_UID" ] || \
	  { echo "error: nothing is built yet; run make first, without sudo" >&2; exit 2; }
	@[ -e "$(BUILD)/man/rankine-bench.1" ] || $(MAKE) --no-print-directory all
	@umask 022 && cmake --install "$(BUILD)" --prefix "$(patsubst ~/%,$(HOME)/%,$(PREFIX))"
	@rm -f "$(BUILD)/install_manifest.txt"

deb:
	@tools/scripts/setup.sh deb
	@$(MAKE) --no-print-directory all BUILD="$(BUILD)-deb" OPTIONS='-DRK_NATIVE=OFF -DBUILD_TESTING=OFF $(subst ','\'',$(OPTIONS))'
	@umask 022 && cpack --config "$(BUILD)-deb/CPackConfig.cmake" -B "$(BUILD)-deb"

# Tests run in parallel: threads that spin while they wait would take other tests' processors. One more than
# JOBS, because some tests mostly wait, for limits or other processes.
test: configure
	@cmake --build "$(BUILD)" -j $(JOBS)
	@OMP_WAIT_POLICY=PASSIVE ctest --test-dir "$(BUILD)" --no-tests=error --output-on-failure -j $$(($(JOBS) + 1))

test-golden: configure
	@cmake --build "$(BUILD)" --target golden -j $(JOBS)
	@"$(BUILD)/bin/golden" "$(GOLDENS)"

test-gpu: configure
	@tools/scripts/test_gpu.sh "$(BUILD)" $(JOBS) $(SEEDS)

test-sanitizers:
	@tools/scripts/setup.sh ci
	@tools/scripts/test_sanitizers.sh address $(JOBS)
	@if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then \
	  tools/scripts/test_sanitizers.sh gpu $(JOBS); \
	else echo "no nvcc: nothing on the emulated GPU under sanitizers"; fi
	@tools/scripts/test_sanitizers.sh thread $(JOBS)

test-kills: configure
	@cmake --build "$(BUILD)" --target train fault_test -j $(JOBS)
	@RK_KILLS=$(KILLS) "$(BUILD)/bin/fault_test" --gtest_filter='*Kills*'

test-faults: configure
	@cmake --build "$(BUILD)" --target train eval fault_test -j $(JOBS)
	@RK_FAULTED_CALLS=0 "$(BUILD)/bin/fault_test" --gtest_filter='-*Kills*'

fuzz:
	@tools/scripts/setup.sh ci
	@tools/scripts/fuzz.sh $(SECONDS) $(JOBS)

bench: all
	@tools/scripts/bench_all.sh "$(BUILD)"

gpu-proof:
	@BUILD="$(BUILD)" tools/scripts/gpu_proof.sh $(PIECE)

gpu-package:
	@tools/scripts/setup.sh
	@JOBS=$(JOBS) tools/scripts/pack_gpu.sh

profile-step:
	@tools/scripts/profile.sh step "$(BUILD)" $(ARGS)

profile-loss:
	@tools/scripts/profile.sh loss "$(BUILD)" --loss $(LOSS) $(ARGS)

format:
	@tools/scripts/lint.sh format

lint:
	@tools/scripts/setup.sh ci
	@tools/scripts/lint.sh check

help:
	@echo 'make                          set up what is missing, build the programs into build/bin'
	@echo 'make demo                     set up, build train and eval, train on drawn characters, evaluate'
	@echo 'make install PREFIX=DIR       programs as rankine-train ..., man pages, completion, recipes (/usr/local)'
	@echo 'make deb                      the same as a Debian package, for any x86-64 processor with AVX2'
	@echo 'make test                     set up, build everything, run every test that needs no GPU'
	@echo 'make test-golden GOLDENS=DIR  compare with the reference values in DIR (laid out like tests/golden)'
	@echo 'make test-gpu                 run the tests that need an NVIDIA GPU; fails where there is none'
	@echo 'make test-gpu SEEDS=n         the same on a GPU that the host emulates, with n orders of summation'
	@echo 'make test-sanitizers          unit tests under AddressSanitizer, UBSan and ThreadSanitizer'
	@echo 'make test-kills KILLS=n       kill training n times (100) in each configuration: equal bits in the end'
	@echo 'make test-faults              let every system call of a run fail, one after the other'
	@echo 'make fuzz SECONDS=n           made-up input for every parser, n seconds in all (600); see tests/fuzz'
	@echo 'make bench                    time a step, the losses, evaluation and the loader'
	@echo 'make gpu-proof PIECE=NAME     what is claimed of the GPU, shown on one; PIECE=list shows the pieces (all)'
	@echo 'make gpu-package              all of that in one archive, for a machine with a GPU and without a compiler'
	@echo 'make profile-step             a training step under NVIDIA profilers, kernel by kernel (ARGS="--bn frozen")'
	@echo 'make profile-loss LOSS=NAME   the same of a loss (smooth_ap; ARGS="--n 1024"); see docs/profiling.md'
	@echo 'make format, make lint        lay the sources out; look at layout and clang-tidy'
	@echo 'Variables: PRESET=release (CMakePresets.json), BUILD=build (folder; of other presets build-PRESET),'
	@echo '           JOBS=cores, WERROR=ON (warnings are errors; so it is where CI is set),'
	@echo '           OPTIONS=-DRK_NATIVE=OFF (and others of CMakeLists.txt)'
