#include "engine/formats/files/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optfarm::formats {
namespace {

constexpr size_t kMaxPathBytes = 1024;
constexpr size_t kMaxPathParts = 32;
// UNITS: bytes. How much is unpacked at once.
constexpr size_t kPieceBytes = 1 << 16;

using ArchivePtr = std::unique_ptr<struct archive, int (*)(struct archive*)>;

class Unpacker {
 public:
  Unpacker(const std::string& path, const std::string& folder,
           const ArchiveLimits& limits)
      : path_(path),
        folder_(folder),
        limits_(limits),
        archive_(archive_read_new(), archive_read_free) {}

  absl::Status Run();

 private:
  absl::Status UnpackEntry(struct archive_entry* entry);
  absl::StatusOr<std::string> CheckedPath(const char* name) const;
  absl::Status WriteFile(const std::string& target, const std::string& name);
  absl::Status WritePieces(int descriptor, const std::string& target);
  absl::Status Damaged() const;
  absl::Status Refused(const std::string& name, absl::string_view why) const;

  const std::string& path_;
  const std::string& folder_;
  const ArchiveLimits& limits_;
  ArchivePtr archive_;
  int64_t entries_ = 0;
  uint64_t bytes_ = 0;
};

absl::Status Unpacker::Damaged() const {
  const char* why = archive_error_string(archive_.get());
  return absl::InvalidArgumentError(absl::StrCat(
      "archive '", path_,
      "' cannot be unpacked: ", why != nullptr ? why : "unknown reason",
      "; a zip, tar or tar.gz file with a SavedModel is expected"));
}

absl::Status Unpacker::Refused(const std::string& name,
                               absl::string_view why) const {
  return absl::InvalidArgumentError(absl::StrCat(
      "archive '", path_, "': entry '", name.substr(0, 200), "' ", why));
}

absl::StatusOr<std::string> Unpacker::CheckedPath(const char* name) const {
  if (name == nullptr) return Damaged();
  const std::string text(name);
  if (text.empty() || text.size() > kMaxPathBytes) {
    return Refused(text, "has no name or a very long one");
  }
  if (text[0] == '/') return Refused(text, "has an absolute path");
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(text, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return Refused(text, "leaves the folder");
    parts.emplace_back(part);
  }
  if (parts.size() > kMaxPathParts) return Refused(text, "is nested too deep");
  std::string target = folder_;
  for (const std::string& part : parts) target = JoinPath(target, part);
  return target;
}

absl::Status Unpacker::WritePieces(int descriptor, const std::string& target) {
  std::vector<char> piece(kPieceBytes);
  while (true) {
    const la_ssize_t n =
        archive_read_data(archive_.get(), piece.data(), piece.size());
    if (n < 0) return Damaged();
    if (n == 0) return absl::OkStatus();
    bytes_ += static_cast<uint64_t>(n);
    if (bytes_ > limits_.bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("archive '", path_, "' unpacks to more than ",
                       limits_.bytes, " bytes"));
    }
    for (la_ssize_t done = 0; done < n;) {
      const ssize_t written = ::write(descriptor, piece.data() + done,
                                      static_cast<size_t>(n - done));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        return ErrnoToStatus(errno, absl::StrCat("writing '", target, "'"));
      }
      done += written;
    }
  }
}

absl::Status Unpacker::WriteFile(const std::string& target,
                                 const std::string& name) {
  const size_t slash = target.rfind('/');
  OPTFARM_RETURN_IF_ERROR(MakeFolders(target.substr(0, slash)));
  const int descriptor =
      ::open(target.c_str(),
             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    if (errno == EEXIST) return Refused(name, "is there twice");
    return ErrnoToStatus(errno, absl::StrCat("creating '", target, "'"));
  }
  absl::Status status = WritePieces(descriptor, target);
  if (::close(descriptor) != 0 && status.ok()) {
    status = ErrnoToStatus(errno, absl::StrCat("closing '", target, "'"));
  }
  return status;
}

absl::Status Unpacker::UnpackEntry(struct archive_entry* entry) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string target,
                           CheckedPath(archive_entry_pathname(entry)));
  const std::string name = archive_entry_pathname(entry);
  if (archive_entry_hardlink(entry) != nullptr ||
      archive_entry_symlink(entry) != nullptr) {
    return Refused(name, "is a link; pack the files themselves");
  }
  switch (archive_entry_filetype(entry)) {
    case AE_IFDIR:
      return MakeFolders(target);
    case AE_IFREG:
      if (target == folder_) return Refused(name, "has no name");
      return WriteFile(target, name);
    default:
      return Refused(name, "is neither a file nor a folder");
  }
}

absl::Status Unpacker::Run() {
  if (archive_ == nullptr) return absl::ResourceExhaustedError("no memory");
  archive_read_support_format_zip(archive_.get());
  archive_read_support_format_tar(archive_.get());
  archive_read_support_filter_gzip(archive_.get());
  if (archive_read_open_filename(archive_.get(), path_.c_str(), kPieceBytes) !=
      ARCHIVE_OK) {
    return Damaged();
  }
  while (true) {
    struct archive_entry* entry = nullptr;
    const int result = archive_read_next_header(archive_.get(), &entry);
    if (result == ARCHIVE_EOF) return absl::OkStatus();
    // A warning is about names in other character sets and the like.
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) return Damaged();
    if (++entries_ > limits_.entries) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "archive '", path_, "' has more than ", limits_.entries, " entries"));
    }
    OPTFARM_RETURN_IF_ERROR(UnpackEntry(entry));
  }
}

}  // namespace

absl::Status UnpackArchive(const std::string& path, const std::string& folder,
                           const ArchiveLimits& limits) {
  OPTFARM_RETURN_IF_ERROR(FileSize(path).status());
  return Unpacker(path, folder, limits).Run();
}

absl::StatusOr<std::string> ReadZippedFile(absl::string_view archive,
                                           absl::string_view name,
                                           uint64_t most) {
  const ArchivePtr reader(archive_read_new(), archive_read_free);
  // The directory at its end counts, not what stands in front.
  if (archive_read_support_format_zip_seekable(reader.get()) != ARCHIVE_OK ||
      archive_read_open_memory(reader.get(), archive.data(), archive.size()) !=
          ARCHIVE_OK) {
    return absl::NotFoundError("there is no zip archive");
  }
  struct archive_entry* entry = nullptr;
  while (archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK) {
    const char* path = archive_entry_pathname(entry);
    if (path == nullptr || name != path) continue;
    std::string bytes;
    std::string piece(kPieceBytes, '\0');
    while (true) {
      const la_ssize_t count =
          archive_read_data(reader.get(), piece.data(), piece.size());
      if (count == 0) return bytes;
      if (count < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", name, "' in the archive is damaged"));
      }
      if (bytes.size() + static_cast<uint64_t>(count) > most) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "'", name, "' in the archive has more than ", most, " bytes"));
      }
      bytes.append(piece, 0, static_cast<size_t>(count));
    }
  }
  return absl::NotFoundError(absl::StrCat("there is no '", name, "'"));
}

}  // namespace optfarm::formats
