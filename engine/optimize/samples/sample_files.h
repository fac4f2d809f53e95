// The sample files of a folder, or of a list: which they are, their kind and
// their order.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_FILES_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_FILES_H_

#include <cstdint>
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
  // '/' between parts, ordered by their parts.
  std::vector<std::string> paths;
};

struct FoundSamples {
  // Relative to the folder, '/' between parts, ordered by their parts.
  std::vector<std::string> paths;
  // Files with other endings, left out.
  int64_t others = 0;
};

// By the name's ending: .tfrecord, .tfrecords, .record.
bool IsRecordsName(const std::string& path);

// The .jpg, .jpeg, .png, .wav and .tfrecord files in a folder and its
// subfolders. Names that begin with a dot are passed over.
// ERRORS: NotFound when the folder is not there; InvalidArgument when it has no
// such file; ResourceExhausted for more than 20000, or folders more than 32
// deep; those of reading a folder.
absl::StatusOr<FoundSamples> FindSampleFiles(const std::string& folder);

// The samples among `paths`; other files are passed over.
// ERRORS: InvalidArgument when there is none, or when they are of several
// kinds.
absl::StatusOr<SampleFiles> SelectSampleFiles(std::vector<std::string> paths);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_SAMPLE_FILES_H_
