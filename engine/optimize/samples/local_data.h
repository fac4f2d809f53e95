// A job's data with the files at hand: the message that describes them, as it
// travels from the command line or REST to the optimizer, and where the files
// lie on this machine.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_LOCAL_DATA_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_LOCAL_DATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::optimize {

struct LocalData {
  v1::Dataset dataset;
  // The folder that the paths of a source are relative to, one per source.
  std::vector<std::string> folders;

  // Adds the samples of a folder and its subfolders. Returns how many other
  // files it has.
  // ERRORS: FindSampleFiles'.
  absl::StatusOr<int64_t> AddFolder(const std::string& folder);
  // Adds an array or a record file that feeds `input`, and a file of labels.
  // Nothing is read.
  void AddInput(const std::string& input, const std::string& path,
                const std::string& member = "");
  void AddLabels(const std::string& path, const std::string& member = "");
  // Sets what is given for every source that feeds an input.
  void SetMeanAndStd(std::optional<double> mean, std::optional<double> std);

  // Whether anything feeds an input.
  bool HasSamples() const;
  // Number of the first source with this role; -1: there is none.
  int Find(v1::DataSource::Role role) const;
  // Where a file lies here.
  std::string PathOf(int source, int file = 0) const;
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_LOCAL_DATA_H_
