// A file that is read here and there, a piece at a time: checkpoints are larger
// than what is wanted of them.

#ifndef OPTFARM_ENGINE_FORMATS_FILES_RANDOM_ACCESS_FILE_H_
#define OPTFARM_ENGINE_FORMATS_FILES_RANDOM_ACCESS_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optfarm::formats {

// THREADS: Read may be called from several threads.
class RandomAccessFile {
 public:
  // ERRORS: ErrnoToStatus's, naming the file; FailedPrecondition for what is no
  // ordinary file.
  static absl::StatusOr<std::unique_ptr<RandomAccessFile>> Open(
      const std::string& path);
  // The same over bytes in memory; `name` stands in messages.
  static std::unique_ptr<RandomAccessFile> FromBytes(std::string bytes,
                                                     std::string name);

  virtual ~RandomAccessFile() = default;

  // The path, for messages.
  const std::string& name() const { return name_; }
  // UNITS: bytes.
  uint64_t size() const { return size_; }

  // `size` bytes from `offset`.
  // ERRORS: DataLoss, before memory is taken, when the file does not have them;
  // Unavailable when reading fails.
  absl::StatusOr<std::string> Read(uint64_t offset, uint64_t size) const;

 protected:
  RandomAccessFile(std::string name, uint64_t size)
      : name_(std::move(name)), size_(size) {}

 private:
  // REQUIRES: the range is in the file.
  virtual absl::Status ReadInto(uint64_t offset, uint64_t size,
                                char* out) const = 0;

  std::string name_;
  uint64_t size_;
};

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_FILES_RANDOM_ACCESS_FILE_H_
