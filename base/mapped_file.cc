#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace optfarm {

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(
    const std::string& path) {
  const std::string what = absl::StrCat("mapping '", path, "'");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoToStatus(errno, what);
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": it is no ordinary file"));
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* data = nullptr;
  // Nothing cannot be mapped.
  if (size > 0) data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  ::close(fd);
  if (data == MAP_FAILED) return ErrnoToStatus(error, what);
#if defined(MADV_NOHUGEPAGE)
  // A large page comes back whole where a part of it was let go. Only a hint.
  if (size > 0) (void)::madvise(data, size, MADV_NOHUGEPAGE);
#endif
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const char*>(data), size));
}

void MappedFile::LetPagesGo() const {
  // Only a hint: refused is as good as not asked.
  if (size_ > 0)
    (void)::madvise(const_cast<char*>(data_), size_, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<char*>(data_), size_);
}

}  // namespace optfarm
