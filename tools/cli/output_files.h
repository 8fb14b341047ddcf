// Protects files against being overwritten by results. A file that the program reads, given by name
// or in a folder, is never overwritten; any other file of another kind, or not written by Rankine,
// only with --force. Results carry a mark of who wrote them. Called before any work.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rk {

enum class FileKind : std::uint8_t {
  kJson,
  kEmbeddings,
  kLoss,
  kPixels,
  kPng,
  kWeights,
  kPython,
  kNeighbours,
  kReport,
  kPlans
};

struct OutputFile {
  std::string flag;  // "--json"
  std::string path;  // empty: not requested
  FileKind kind;
  std::string ending = {};  // for weights, which have three formats; empty: any
  std::string made = {};    // a folder that is made before the file is written; empty: none
};

// The extension of a path in lower case; ".h5" for ".hdf5" too; empty: none.
std::string output_ending(const std::string& path);

// Throws UsageError if two outputs, or an output and one of `inputs`, are the same file, if a name
// has the extension of another format ("e.npy" for embeddings, which are HDF5) or, where it chooses
// one of several formats, of none of them ("w.safetensor"), or if anything but JSON is to go to
// standard output ("-"). Throws InputError if an output is a folder, if its folder is missing or,
// unless `force`, if the file there is not an earlier result of that kind. `inputs` may include
// folders: other files in one are not replaced even with `force`. Empty files may always be
// replaced. Paths that are not regular files (/dev/stdout, a pipe) are allowed only for JSON, which
// is written into them.
void check_outputs(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs,
                   bool force);

// For a new or resumed run in `folder`. Throws UsageError if one of `others` (flags with their
// paths) is one of the run's own files; InputError if one of these is a folder, a pipe, a device or
// a link, since a run must not write elsewhere (links from checkpoints to checkpoints are allowed).
void check_run_files(const std::string& folder,
                     const std::vector<std::pair<std::string, std::string>>& others);

// For a new run in `folder`, which need not exist. Throws UsageError if it is one of `data`, the
// folders of pictures, or lies in one, where it would be taken for a class. Throws InputError,
// unless `force`, if it holds files with names of a run's files that no run left there.
void check_run_folder(const std::string& folder, const std::vector<std::string>& data, bool force);

}  // namespace rk
