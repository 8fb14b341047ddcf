// Where results go: a file that the program is told to read, by its name or with its folder, is
// never written over, and any other file of another kind, or of another program's, only where
// somebody says so (--force): results say in themselves whose they are. Asked before any work.
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
  std::string path;  // empty: not asked for
  FileKind kind;
  std::string ending = {};  // of weights, which have three: of the one that is written; empty: any
};

// How a path's file name ends, in small letters: ".h5", for ".hdf5" too; empty: it has no ending.
std::string ending_of(const std::string& path);

// UsageError where two outputs, or an output and one of `inputs`, are the same file, and where a
// name ends as files of another format do ("e.npy" for embeddings, which are HDF5); InputError
// where it is a folder, where its folder is not there or, unless `force`, what is there is no
// earlier result of that kind. Among `inputs` may be folders: what lies in one is not replaced by
// `force` either. Empty files may be replaced by anything. What is no regular file (/dev/stdout, a
// pipe) is for JSON alone, which is written to it.
void check_outputs(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs,
                   bool force);

// For a run in `folder`, new or not. UsageError where one of `others`, flags with their paths, is a
// file of the run's own; InputError where a name of its own is a folder's or a link's, but for
// links of checkpoints to checkpoints: a run writes nowhere else.
void check_run_files(const std::string& folder,
                     const std::vector<std::pair<std::string, std::string>>& others);

// For a new run in `folder`, which need not be there. UsageError where it is one of `data`, the
// folders of pictures, or lies in one: it would be taken for a class. InputError where it holds
// files of a run's names that no run left there, unless `force`.
void check_run_folder(const std::string& folder, const std::vector<std::string>& data, bool force);

}  // namespace rk
