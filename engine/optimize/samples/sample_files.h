// The files of a folder of samples.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_FILES_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace optfarm::optimize {

enum class SampleKind {
  kPicture,
  kSound,
  // Many samples in one file.
  kRecords,
};

struct SampleFiles {
  SampleKind kind = SampleKind::kPicture;
  // Below the folder, '/' between parts, folders in order of their names.
  std::vector<std::string> paths;
};

// By the name's ending: .tfrecord, .tfrecords, .record.
bool IsRecordsName(const std::string& path);

// All samples in a folder and its subfolders; other files are passed over.
// ERRORS: NotFound when it is not there; InvalidArgument for a folder without
// samples, with several kinds of them, or with too many.
absl::StatusOr<SampleFiles> FindSampleFiles(const std::string& folder);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_FILES_H_
