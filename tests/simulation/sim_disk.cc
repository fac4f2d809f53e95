#include "tests/simulation/sim_disk.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace optfarm::simulation {
namespace {

// What a disk writes whole.
constexpr int64_t kSectorBytes = 512;

std::string FolderOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

}  // namespace

class SimDisk::File {
 public:
  // A write at an offset, or a cut to that size.
  struct Change {
    int64_t offset = 0;
    std::string bytes;
    bool cuts = false;
  };

  static void Apply(const Change& change, std::string& data) {
    const auto offset = static_cast<size_t>(change.offset);
    if (change.cuts) {
      data.resize(offset);
      return;
    }
    const size_t end = offset + change.bytes.size();
    if (data.size() < end) data.resize(end);
    std::memcpy(data.data() + offset, change.bytes.data(), change.bytes.size());
  }

  // What processes see.
  std::string data;
  std::string durable;
  // Since the last sync, in order.
  std::vector<Change> pending;
  absl::Time modified = absl::UnixEpoch();
};

SimDisk::SimDisk(uint64_t seed, std::string root)
    : random_(seed), root_(std::move(root)) {
  names_[root_] = nullptr;
  durable_names_ = names_;
}

std::unique_ptr<SimDisk> SimDisk::Copy(uint64_t seed) const {
  auto copy = std::make_unique<SimDisk>(seed, root_);
  for (const auto& [path, file] : names_) {
    FilePtr same;
    if (file != nullptr) {
      same = std::make_shared<File>();
      same->data = same->durable = file->data;
      same->modified = file->modified;
    }
    copy->names_[path] = std::move(same);
  }
  copy->durable_names_ = copy->names_;
  return copy;
}

bool SimDisk::Fails(double probability) {
  return probability > 0 && random_.Chance(probability);
}

bool SimDisk::MayChange() {
  if (stopped_) return false;
  if (++changes_ != stop_at_) return true;
  StopNow(stop_how_);
  return false;
}

void SimDisk::StopAfter(int changes, Stop how) {
  stop_at_ = changes_ + changes;
  stop_how_ = how;
}

void SimDisk::StopNow(Stop how) {
  stopped_ = true;
  stop_how_ = how;
}

SimDisk::FilePtr SimDisk::Open(const std::string& path, bool create,
                               DiskError* error) {
  *error = DiskError::kNone;
  if (stopped_) {
    *error = DiskError::kIo;
    return nullptr;
  }
  const auto found = names_.find(path);
  if (found != names_.end() && found->second != nullptr) return found->second;
  if (found != names_.end() || !create || !names_.contains(FolderOf(path))) {
    *error = DiskError::kNoEntry;
    return nullptr;
  }
  if (!MayChange()) {
    *error = DiskError::kIo;
    return nullptr;
  }
  auto file = std::make_shared<File>();
  names_[path] = file;
  pending_names_.push_back({path, "", file});
  return file;
}

DiskError SimDisk::Read(const File& file, int64_t offset, size_t size,
                        char* out, size_t* got) {
  *got = 0;
  if (stopped_ || Fails(faults.read)) return DiskError::kIo;
  if (offset >= SizeOf(file)) return DiskError::kNone;
  *got = std::min(size, file.data.size() - static_cast<size_t>(offset));
  std::memcpy(out, file.data.data() + offset, *got);
  return DiskError::kNone;
}

DiskError SimDisk::Write(File& file, int64_t offset, absl::string_view bytes) {
  if (stopped_) return DiskError::kIo;
  const bool whole = MayChange();
  const bool grows = offset + static_cast<int64_t>(bytes.size()) > SizeOf(file);
  DiskError error = DiskError::kNone;
  if (!whole || Fails(faults.write)) error = DiskError::kIo;
  if (faults.full && grows) error = DiskError::kFull;
  if (error != DiskError::kNone) {
    // A part of it may be done.
    bytes = bytes.substr(0, random_.Next() % (bytes.size() + 1));
    if (error == DiskError::kFull && offset >= SizeOf(file)) bytes = "";
    if (bytes.empty()) return error;
  }
  File::Change change{offset, std::string(bytes)};
  File::Apply(change, file.data);
  file.pending.push_back(std::move(change));
  return error;
}

DiskError SimDisk::Truncate(File& file, int64_t size) {
  if (!MayChange() || Fails(faults.write)) return DiskError::kIo;
  File::Change change{size, "", true};
  File::Apply(change, file.data);
  file.pending.push_back(std::move(change));
  return DiskError::kNone;
}

DiskError SimDisk::Sync(File& file) {
  if (!MayChange()) return DiskError::kIo;
  if (Fails(faults.sync)) {
    // The pages are clean from now on, whatever of them was written; they may
    // be read again from the disk at any time.
    for (const File::Change& change : file.pending) {
      if (random_.Chance(0.3)) File::Apply(change, file.durable);
    }
    file.pending.clear();
    if (random_.Chance(0.5)) file.data = file.durable;
    return DiskError::kIo;
  }
  for (const File::Change& change : file.pending) {
    File::Apply(change, file.durable);
  }
  file.pending.clear();
  return DiskError::kNone;
}

int64_t SimDisk::SizeOf(const File& file) {
  return static_cast<int64_t>(file.data.size());
}

absl::Time SimDisk::ModifiedOf(const File& file) { return file.modified; }

void SimDisk::SetModified(File& file, absl::Time time) { file.modified = time; }

DiskError SimDisk::Rename(const std::string& from, const std::string& to) {
  if (!MayChange() || Fails(faults.write)) return DiskError::kIo;
  const auto found = names_.find(from);
  if (found == names_.end() || !names_.contains(FolderOf(to))) {
    return DiskError::kNoEntry;
  }
  NameChange change{from, to, found->second};
  Apply(change, names_);
  pending_names_.push_back(std::move(change));
  return DiskError::kNone;
}

DiskError SimDisk::Remove(const std::string& path) {
  if (!MayChange() || Fails(faults.write)) return DiskError::kIo;
  if (!names_.contains(path)) return DiskError::kNoEntry;
  NameChange change{path, "", nullptr, true};
  Apply(change, names_);
  pending_names_.push_back(std::move(change));
  return DiskError::kNone;
}

DiskError SimDisk::MakeFolder(const std::string& path) {
  if (names_.contains(path)) return DiskError::kNone;
  if (!MayChange()) return DiskError::kIo;
  if (!names_.contains(FolderOf(path))) return DiskError::kNoEntry;
  if (faults.full) return DiskError::kFull;
  NameChange change{path, "", nullptr};
  Apply(change, names_);
  pending_names_.push_back(std::move(change));
  return DiskError::kNone;
}

DiskError SimDisk::List(const std::string& folder,
                        std::vector<std::string>* names) {
  names->clear();
  if (stopped_ || Fails(faults.read)) return DiskError::kIo;
  if (!names_.contains(folder)) return DiskError::kNoEntry;
  const std::string start = folder + "/";
  for (auto it = names_.lower_bound(start);
       it != names_.end() && absl::StartsWith(it->first, start); ++it) {
    const std::string rest = it->first.substr(start.size());
    if (!absl::StrContains(rest, '/')) names->push_back(rest);
  }
  return DiskError::kNone;
}

void SimDisk::Apply(const NameChange& change, Names& names) {
  if (change.removes) {
    names.erase(change.path);
  } else if (!change.to.empty()) {
    names.erase(change.path);
    names[change.to] = change.file;
  } else {
    names[change.path] = change.file;
  }
}

std::vector<std::string> SimDisk::FoldersOf(const NameChange& change) {
  std::vector<std::string> folders = {FolderOf(change.path)};
  if (!change.to.empty()) folders.push_back(FolderOf(change.to));
  return folders;
}

// Changes of one folder stay in their order, and a move is one change of both.
DiskError SimDisk::SyncFolder(const std::string& path) {
  if (!MayChange() || Fails(faults.sync)) return DiskError::kIo;
  std::set<std::string> folders = {path};
  std::vector<bool> goes(pending_names_.size());
  for (size_t i = pending_names_.size(); i-- > 0;) {
    const std::vector<std::string> touched = FoldersOf(pending_names_[i]);
    goes[i] = absl::c_any_of(
        touched, [&](const std::string& f) { return folders.contains(f); });
    if (goes[i]) folders.insert(touched.begin(), touched.end());
  }
  std::vector<NameChange> rest;
  for (size_t i = 0; i < goes.size(); ++i) {
    if (goes[i]) {
      Apply(pending_names_[i], durable_names_);
    } else {
      rest.push_back(std::move(pending_names_[i]));
    }
  }
  pending_names_ = std::move(rest);
  return DiskError::kNone;
}

DiskError SimDisk::SyncAll() {
  if (!MayChange() || Fails(faults.sync)) return DiskError::kIo;
  for (const NameChange& change : pending_names_) {
    Apply(change, durable_names_);
  }
  pending_names_.clear();
  for (const auto& [path, file] : names_) {
    if (file == nullptr) continue;
    for (const File::Change& change : file->pending) {
      File::Apply(change, file->durable);
    }
    file->pending.clear();
  }
  return DiskError::kNone;
}

void SimDisk::LoseNames() {
  const double kept = random_.Below(3) * 0.5;
  std::set<std::string> broken;
  for (const NameChange& change : pending_names_) {
    const std::vector<std::string> touched = FoldersOf(change);
    const bool lost = absl::c_any_of(
        touched, [&](const std::string& f) { return broken.contains(f); });
    if (!lost && random_.Chance(kept)) {
      Apply(change, durable_names_);
    } else {
      broken.insert(touched.begin(), touched.end());
    }
  }
  pending_names_.clear();
  // A folder's contents go with it; parents come first in the order of names.
  for (auto it = durable_names_.begin(); it != durable_names_.end();) {
    const bool there =
        it->first == root_ || durable_names_.contains(FolderOf(it->first));
    it = there ? std::next(it) : durable_names_.erase(it);
  }
}

void SimDisk::LosePower() {
  LoseNames();
  const double kept = random_.Below(3) * 0.5;
  for (auto& [path, file] : durable_names_) {
    if (file == nullptr) continue;
    std::string data = file->durable;
    for (const File::Change& change : file->pending) {
      if (random_.Chance(kept)) {
        File::Apply(change, data);
      } else if (!change.cuts && random_.Chance(0.5)) {
        // Torn: some of its sectors.
        const auto size = static_cast<int64_t>(change.bytes.size());
        for (int64_t at = 0; at < size;) {
          const int64_t sector_end =
              (change.offset + at) / kSectorBytes * kSectorBytes + kSectorBytes;
          const int64_t end = std::min(size, sector_end - change.offset);
          if (random_.Chance(0.5)) {
            const std::string part = change.bytes.substr(
                static_cast<size_t>(at), static_cast<size_t>(end - at));
            File::Apply({change.offset + at, part}, data);
          }
          at = end;
        }
      }
    }
    auto survivor = std::make_shared<File>();
    survivor->data = survivor->durable = std::move(data);
    survivor->modified = file->modified;
    file = std::move(survivor);
  }
  names_ = durable_names_;
}

void SimDisk::StartAgain() {
  if (stop_how_ == Stop::kPower) LosePower();
  stopped_ = false;
  stop_at_ = -1;
}

}  // namespace optfarm::simulation
