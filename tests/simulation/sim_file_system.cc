#include "tests/simulation/sim_file_system.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optfarm::simulation {
namespace {

absl::Status ToStatus(DiskError error, absl::string_view doing,
                      const std::string& path) {
  const std::string what = absl::StrCat(doing, " '", path, "'");
  switch (error) {
    case DiskError::kNone:
      return absl::OkStatus();
    case DiskError::kFull:
      return ErrnoToStatus(ENOSPC, what);
    case DiskError::kNoEntry:
      return ErrnoToStatus(ENOENT, what);
    case DiskError::kIo:
      break;
  }
  return ErrnoToStatus(EIO, what);
}

class SimAppendFile final : public storage::AppendFile {
 public:
  SimAppendFile(SimDisk& disk, SimDisk::FilePtr file, std::string path)
      : disk_(disk), file_(std::move(file)), path_(std::move(path)) {}

  absl::Status Append(absl::string_view bytes) override {
    return ToStatus(disk_.Write(*file_, SimDisk::SizeOf(*file_), bytes),
                    "writing", path_);
  }
  absl::Status Sync() override {
    return ToStatus(disk_.Sync(*file_), "syncing", path_);
  }

 private:
  SimDisk& disk_;
  const SimDisk::FilePtr file_;
  const std::string path_;
};

class SimReadFile final : public storage::ReadFileHandle {
 public:
  SimReadFile(SimDisk& disk, SimDisk::FilePtr file, std::string path)
      : disk_(disk), file_(std::move(file)), path_(std::move(path)) {}

  absl::StatusOr<std::string> Read(int64_t offset, int64_t max_bytes) override {
    std::string bytes(static_cast<size_t>(max_bytes), '\0');
    size_t got = 0;
    OPTFARM_RETURN_IF_ERROR(
        ToStatus(disk_.Read(*file_, offset, bytes.size(), bytes.data(), &got),
                 "reading", path_));
    bytes.resize(got);
    return bytes;
  }

 private:
  SimDisk& disk_;
  const SimDisk::FilePtr file_;
  const std::string path_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<storage::AppendFile>>
SimFileSystem::OpenForAppend(const std::string& path) {
  DiskError error = DiskError::kNone;
  SimDisk::FilePtr file = disk_.Open(path, true, &error);
  if (file == nullptr) return ToStatus(error, "opening", path);
  return std::make_unique<SimAppendFile>(disk_, std::move(file), path);
}

absl::StatusOr<std::unique_ptr<storage::ReadFileHandle>>
SimFileSystem::OpenForRead(const std::string& path) {
  DiskError error = DiskError::kNone;
  SimDisk::FilePtr file = disk_.Open(path, false, &error);
  if (file == nullptr) return ToStatus(error, "opening", path);
  return std::make_unique<SimReadFile>(disk_, std::move(file), path);
}

absl::StatusOr<storage::FileInfo> SimFileSystem::Stat(const std::string& path) {
  DiskError error = DiskError::kNone;
  const SimDisk::FilePtr file = disk_.Open(path, false, &error);
  if (file == nullptr) return ToStatus(error, "looking at", path);
  return storage::FileInfo{SimDisk::SizeOf(*file), SimDisk::ModifiedOf(*file)};
}

absl::StatusOr<std::vector<std::string>> SimFileSystem::List(
    const std::string& folder) {
  std::vector<std::string> names;
  OPTFARM_RETURN_IF_ERROR(
      ToStatus(disk_.List(folder, &names), "listing", folder));
  return names;
}

absl::Status SimFileSystem::Rename(const std::string& from,
                                   const std::string& to) {
  return ToStatus(disk_.Rename(from, to), "renaming", from);
}

absl::Status SimFileSystem::Remove(const std::string& path) {
  const DiskError error = disk_.Remove(path);
  return error == DiskError::kNoEntry ? absl::OkStatus()
                                      : ToStatus(error, "removing", path);
}

absl::Status SimFileSystem::MakeFolders(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos;
       end = path.find('/', end + 1)) {
    OPTFARM_RETURN_IF_ERROR(
        ToStatus(disk_.MakeFolder(path.substr(0, end)), "making", path));
  }
  return ToStatus(disk_.MakeFolder(path), "making", path);
}

absl::Status SimFileSystem::SyncFolder(const std::string& folder) {
  return ToStatus(disk_.SyncFolder(folder), "syncing", folder);
}

absl::Status SimFileSystem::SyncAll(const std::string& folder) {
  return ToStatus(disk_.SyncAll(), "syncing all below", folder);
}

absl::Status SimFileSystem::Touch(const std::string& path, absl::Time time) {
  DiskError error = DiskError::kNone;
  const SimDisk::FilePtr file = disk_.Open(path, false, &error);
  if (file != nullptr) SimDisk::SetModified(*file, time);
  return ToStatus(error, "touching", path);
}

absl::StatusOr<int64_t> SimFileSystem::FreeBytes(const std::string& folder) {
  if (disk_.stopped()) return ToStatus(DiskError::kIo, "looking at", folder);
  return disk_.faults.full ? 0 : int64_t{1} << 40;
}

absl::Status WriteFileAtomically(SimDisk& disk, const std::string& path,
                                 absl::string_view bytes) {
  const std::string temporary = path + ".tmp";
  DiskError error = DiskError::kNone;
  const SimDisk::FilePtr file = disk.Open(temporary, true, &error);
  if (error == DiskError::kNone) error = disk.Truncate(*file, 0);
  if (error == DiskError::kNone) error = disk.Write(*file, 0, bytes);
  if (error == DiskError::kNone) error = disk.Sync(*file);
  if (error == DiskError::kNone) error = disk.Rename(temporary, path);
  if (error == DiskError::kNone) {
    error = disk.SyncFolder(path.substr(0, path.rfind('/')));
  }
  return ToStatus(error, "writing", path);
}

absl::StatusOr<std::string> ReadFile(SimDisk& disk, const std::string& path) {
  DiskError error = DiskError::kNone;
  const SimDisk::FilePtr file = disk.Open(path, false, &error);
  std::string bytes;
  if (file != nullptr) {
    bytes.resize(static_cast<size_t>(SimDisk::SizeOf(*file)));
    size_t got = 0;
    error = disk.Read(*file, 0, bytes.size(), bytes.data(), &got);
  }
  OPTFARM_RETURN_IF_ERROR(ToStatus(error, "reading", path));
  return bytes;
}

}  // namespace optfarm::simulation
