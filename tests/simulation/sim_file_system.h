// The blob store's file system on a simulated disk.

#ifndef OPTFARM_TESTS_SIMULATION_SIM_FILE_SYSTEM_H_
#define OPTFARM_TESTS_SIMULATION_SIM_FILE_SYSTEM_H_

#include <memory>
#include <string>
#include <vector>

#include "storage/file_system.h"
#include "tests/simulation/sim_disk.h"

namespace optfarm::simulation {

// OWNERSHIP: the disk outlives it.
class SimFileSystem final : public storage::FileSystem {
 public:
  explicit SimFileSystem(SimDisk& disk) : disk_(disk) {}

  absl::StatusOr<std::unique_ptr<storage::AppendFile>> OpenForAppend(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<storage::ReadFileHandle>> OpenForRead(
      const std::string& path) override;
  absl::StatusOr<storage::FileInfo> Stat(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& folder) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status MakeFolders(const std::string& path) override;
  absl::Status SyncFolder(const std::string& folder) override;
  absl::Status SyncAll(const std::string& folder) override;
  absl::Status Touch(const std::string& path, absl::Time time) override;
  absl::StatusOr<int64_t> FreeBytes(const std::string& folder) override;

 private:
  SimDisk& disk_;
};

// base/files.h's WriteFileAtomically and ReadFile, on a simulated disk.
absl::Status WriteFileAtomically(SimDisk& disk, const std::string& path,
                                 absl::string_view bytes);
absl::StatusOr<std::string> ReadFile(SimDisk& disk, const std::string& path);

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_SIM_FILE_SYSTEM_H_
