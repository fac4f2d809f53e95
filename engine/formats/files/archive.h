// Archives in which folders travel: zip, tar and tar.gz, for SavedModels.
//
// Archives are not trusted: nothing is written outside the folder, only plain
// files and folders are, and their number and sizes are limited while they are
// unpacked, whatever the archive claims.

#ifndef OPTFARM_ENGINE_FORMATS_FILES_ARCHIVE_H_
#define OPTFARM_ENGINE_FORMATS_FILES_ARCHIVE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::formats {

struct ArchiveLimits {
  int64_t entries = 10'000;
  // UNITS: bytes, unpacked.
  uint64_t bytes = uint64_t{8} << 30;
};

// Unpacks into a folder that is there and empty. What was written before an
// error stays; the caller removes it.
// ERRORS: InvalidArgument naming the entry for a path that leaves the folder or
// is there twice, a link or a device, a damaged archive or an unknown format;
// ResourceExhausted beyond the limits; the files' own.
absl::Status UnpackArchive(const std::string& path, const std::string& folder,
                           const ArchiveLimits& limits = {});

// The bytes of one file of a zip archive, which may begin behind other data.
// ERRORS: NotFound where there is no such file or no archive; InvalidArgument
// for a damaged one; ResourceExhausted for a file of more than `most` bytes.
absl::StatusOr<std::string> ReadZippedFile(absl::string_view archive,
                                           absl::string_view name,
                                           uint64_t most);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_FILES_ARCHIVE_H_
