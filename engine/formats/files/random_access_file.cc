#include "engine/formats/files/random_access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optfarm::formats {
namespace {

class FileOnDisk final : public RandomAccessFile {
 public:
  FileOnDisk(std::string path, uint64_t size, int descriptor)
      : RandomAccessFile(std::move(path), size), descriptor_(descriptor) {}
  ~FileOnDisk() override { ::close(descriptor_); }

 private:
  absl::Status ReadInto(uint64_t offset, uint64_t size,
                        char* out) const override {
    while (size > 0) {
      const ssize_t n =
          ::pread(descriptor_, out, size, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        return ErrnoToStatus(errno, absl::StrCat("reading '", name(), "'"));
      }
      if (n == 0) {
        return absl::DataLossError(
            absl::StrCat("'", name(), "' became shorter while it was read"));
      }
      offset += static_cast<uint64_t>(n);
      size -= static_cast<uint64_t>(n);
      out += n;
    }
    return absl::OkStatus();
  }

  int descriptor_;
};

class FileInMemory final : public RandomAccessFile {
 public:
  FileInMemory(std::string name, std::string bytes)
      : RandomAccessFile(std::move(name), bytes.size()),
        bytes_(std::move(bytes)) {}

 private:
  absl::Status ReadInto(uint64_t offset, uint64_t size,
                        char* out) const override {
    std::copy_n(bytes_.data() + offset, size, out);
    return absl::OkStatus();
  }

  std::string bytes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RandomAccessFile>> RandomAccessFile::Open(
    const std::string& path) {
  const std::string what = absl::StrCat("opening '", path, "'");
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return ErrnoToStatus(errno, what);
  struct stat info;
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": it is no ordinary file"));
  }
  return std::make_unique<FileOnDisk>(path, static_cast<uint64_t>(info.st_size),
                                      descriptor);
}

std::unique_ptr<RandomAccessFile> RandomAccessFile::FromBytes(
    std::string bytes, std::string name) {
  return std::make_unique<FileInMemory>(std::move(name), std::move(bytes));
}

absl::StatusOr<std::string> RandomAccessFile::Read(uint64_t offset,
                                                   uint64_t size) const {
  if (offset > size_ || size > size_ - offset) {
    return absl::DataLossError(absl::StrCat(
        "'", name_, "': ", size, " bytes at ", offset,
        " are wanted, the file has ", size_, " bytes; is it complete?"));
  }
  std::string bytes(size, '\0');
  OPTFARM_RETURN_IF_ERROR(ReadInto(offset, size, bytes.data()));
  return bytes;
}

}  // namespace optfarm::formats
