// A disk in memory that knows what is durable. What was written and not synced
// may be lost or torn when the power fails, each write for itself; so may names
// that were made, moved or removed in a folder that was not synced. It can fill
// up and fail, and a failed sync loses what it was to make durable.

#ifndef OPTFARM_TESTS_SIMULATION_SIM_DISK_H_
#define OPTFARM_TESTS_SIMULATION_SIM_DISK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/simulation/random.h"

namespace optfarm::simulation {

enum class DiskError { kNone, kIo, kFull, kNoEntry };

// What is to fail, by probability of each call.
struct DiskFaults {
  double read = 0;
  double write = 0;
  double sync = 0;
  // No file can grow.
  bool full = false;
};

// How a process ends.
enum class Stop {
  // The machine goes on: what was written is there.
  kProcess,
  // Only what is durable is sure to be there.
  kPower,
};

// THREADS: one thread at a time.
class SimDisk {
 public:
  // A file's contents; its names are the disk's.
  class File;
  using FilePtr = std::shared_ptr<File>;

  // Has the folder `root` and nothing else.
  SimDisk(uint64_t seed, std::string root);

  // The same files, durable, on a disk of another seed.
  // REQUIRES: nothing is open.
  std::unique_ptr<SimDisk> Copy(uint64_t seed) const;

  // Null, with an error, where there is none and `create` is false.
  FilePtr Open(const std::string& path, bool create, DiskError* error);
  // Puts what is there of the range into `out`; `*got` bytes.
  DiskError Read(const File& file, int64_t offset, size_t size, char* out,
                 size_t* got);
  DiskError Write(File& file, int64_t offset, absl::string_view bytes);
  DiskError Truncate(File& file, int64_t size);
  DiskError Sync(File& file);
  static int64_t SizeOf(const File& file);
  static absl::Time ModifiedOf(const File& file);
  static void SetModified(File& file, absl::Time time);

  DiskError Rename(const std::string& from, const std::string& to);
  // kNoEntry when there is no such file.
  DiskError Remove(const std::string& path);
  DiskError MakeFolder(const std::string& path);
  DiskError SyncFolder(const std::string& path);
  // All names and files.
  DiskError SyncAll();
  bool Exists(const std::string& path) const { return names_.contains(path); }
  // Names in a folder, in order; kNoEntry when there is no such folder.
  DiskError List(const std::string& folder, std::vector<std::string>* names);

  DiskFaults faults;

  // The process that uses the disk ends with its `changes`-th change from now,
  // of which a part may be done.
  void StopAfter(int changes, Stop how);
  // Now.
  void StopNow(Stop how);
  // Since then every call fails: what the process still does is not seen.
  bool stopped() const { return stopped_; }
  // What survived is all there is. REQUIRES: stopped; nothing is open.
  void StartAgain();

  int64_t changes() const { return changes_; }

 private:
  // A change to names. `to` is set for a move, which touches two folders.
  struct NameChange {
    std::string path;
    std::string to;
    // Null for a folder and for what is removed.
    FilePtr file;
    bool removes = false;
  };
  using Names = std::map<std::string, FilePtr>;

  // Counts a change; false when it is not to be done whole.
  bool MayChange();
  bool Fails(double probability);
  static void Apply(const NameChange& change, Names& names);
  static std::vector<std::string> FoldersOf(const NameChange& change);
  void LosePower();
  void LoseNames();

  Random random_;
  const std::string root_;
  // Folders have no file.
  Names names_;
  Names durable_names_;
  std::vector<NameChange> pending_names_;
  int64_t changes_ = 0;
  int64_t stop_at_ = -1;
  Stop stop_how_ = Stop::kProcess;
  bool stopped_ = false;
};

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_SIM_DISK_H_
