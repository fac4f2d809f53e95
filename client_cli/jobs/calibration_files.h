// A folder of samples as the list of files that a job carries.

#ifndef OPTFARM_CLIENT_CLI_JOBS_CALIBRATION_FILES_H_
#define OPTFARM_CLIENT_CLI_JOBS_CALIBRATION_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace optfarm::client_cli {

struct CalibrationFiles {
  // Paths relative to the folder, '/' between parts, sorted bytewise.
  std::vector<std::string> paths;
  // Files with other endings, left out.
  int64_t others = 0;
};

// Finds .jpg, .jpeg, .png, .wav and .tfrecord files in the folder and its
// subfolders.
// Names that begin with a dot are passed over.
// ERRORS: those of reading a folder; InvalidArgument when there is no such
// file; ResourceExhausted for more than 20000 or folders more than 32 deep.
absl::StatusOr<CalibrationFiles> FindCalibrationFiles(
    const std::string& folder);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_CALIBRATION_FILES_H_
