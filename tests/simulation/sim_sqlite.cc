#include "tests/simulation/sim_sqlite.h"

#include <sqlite3.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/random.h"

namespace optfarm::simulation {
namespace {

// That of SQLite's own VFS for Linux.
constexpr int kSectorBytes = 4096;
constexpr int kMaxPath = 512;
// It writes nothing at all of more than this.
constexpr int kMaxPieceBytes = (1 << 17) - 1;

struct OpenFile;

// What the connections to one file share: locks, and the memory of a log's
// index.
struct Shared {
  int users = 0;
  int readers = 0;
  const OpenFile* reserved = nullptr;
  const OpenFile* pending = nullptr;
  const OpenFile* exclusive = nullptr;
  std::vector<std::unique_ptr<std::string>> memory;
  std::array<int, SQLITE_SHM_NLOCK> shared_locks{};
  std::array<const OpenFile*, SQLITE_SHM_NLOCK> exclusive_locks{};
};

struct State {
  SimDisk* disk = nullptr;
  Random random{0};
  std::map<const SimDisk::File*, Shared> shared;
  int64_t temporary_files = 0;
};

State& TheState() {
  static State* const state = new State();
  return *state;
}

// SQLite allocates it, and knows the first part.
struct OpenFile {
  sqlite3_file base;
  SimDisk::FilePtr file;
  // Of a temporary file, which no fault concerns.
  std::unique_ptr<std::string> temporary;
  std::string path;
  Shared* shared = nullptr;
  int lock = SQLITE_LOCK_NONE;
  uint32_t shared_locks = 0;
  bool new_name = false;
};

OpenFile& Of(sqlite3_file* file) { return *reinterpret_cast<OpenFile*>(file); }

int CodeOf(DiskError error, int of_io) {
  switch (error) {
    case DiskError::kNone:
      return SQLITE_OK;
    case DiskError::kFull:
      return SQLITE_FULL;
    default:
      return of_io;
  }
}

int Unlock(sqlite3_file* file, int level) {
  OpenFile& open = Of(file);
  if (open.lock <= level || open.shared == nullptr) return SQLITE_OK;
  Shared& shared = *open.shared;
  if (shared.exclusive == &open) shared.exclusive = nullptr;
  if (shared.pending == &open) shared.pending = nullptr;
  if (shared.reserved == &open) shared.reserved = nullptr;
  if (level == SQLITE_LOCK_NONE) --shared.readers;
  open.lock = level;
  return SQLITE_OK;
}

int ReleaseMemory(sqlite3_file* file, int) {
  OpenFile& open = Of(file);
  if (open.shared == nullptr) return SQLITE_OK;
  for (int i = 0; i < SQLITE_SHM_NLOCK; ++i) {
    const auto slot = static_cast<size_t>(i);
    if (open.shared->exclusive_locks[slot] == &open) {
      open.shared->exclusive_locks[slot] = nullptr;
    }
    if ((open.shared_locks & (1u << i)) != 0) --open.shared->shared_locks[slot];
  }
  open.shared_locks = 0;
  return SQLITE_OK;
}

int Close(sqlite3_file* file) {
  OpenFile& open = Of(file);
  ReleaseMemory(file, 0);
  Unlock(file, SQLITE_LOCK_NONE);
  if (open.shared != nullptr && --open.shared->users == 0) {
    TheState().shared.erase(open.file.get());
  }
  open.~OpenFile();
  return SQLITE_OK;
}

int Read(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
  OpenFile& open = Of(file);
  size_t got = 0;
  const auto wanted = static_cast<size_t>(size);
  if (open.temporary != nullptr) {
    const auto at = static_cast<size_t>(offset);
    if (at < open.temporary->size()) {
      got = open.temporary->copy(static_cast<char*>(out), wanted, at);
    }
  } else {
    const DiskError error = TheState().disk->Read(
        *open.file, offset, wanted, static_cast<char*>(out), &got);
    if (error != DiskError::kNone) return SQLITE_IOERR_READ;
  }
  if (got == wanted) return SQLITE_OK;
  std::memset(static_cast<char*>(out) + got, 0, wanted - got);
  return SQLITE_IOERR_SHORT_READ;
}

int Write(sqlite3_file* file, const void* data, int size,
          sqlite3_int64 offset) {
  if (size > kMaxPieceBytes) return SQLITE_FULL;
  OpenFile& open = Of(file);
  const absl::string_view bytes(static_cast<const char*>(data),
                                static_cast<size_t>(size));
  if (open.temporary != nullptr) {
    const size_t end = static_cast<size_t>(offset) + bytes.size();
    if (open.temporary->size() < end) open.temporary->resize(end);
    std::memcpy(open.temporary->data() + offset, bytes.data(), bytes.size());
    return SQLITE_OK;
  }
  return CodeOf(TheState().disk->Write(*open.file, offset, bytes),
                SQLITE_IOERR_WRITE);
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  OpenFile& open = Of(file);
  if (open.temporary != nullptr) {
    open.temporary->resize(static_cast<size_t>(size));
    return SQLITE_OK;
  }
  return CodeOf(TheState().disk->Truncate(*open.file, size),
                SQLITE_IOERR_TRUNCATE);
}

// The first sync of a log or journal makes its name durable too, as in SQLite's
// own VFS.
int Sync(sqlite3_file* file, int) {
  OpenFile& open = Of(file);
  if (open.temporary != nullptr) return SQLITE_OK;
  SimDisk& disk = *TheState().disk;
  if (disk.Sync(*open.file) != DiskError::kNone) return SQLITE_IOERR_FSYNC;
  if (!open.new_name) return SQLITE_OK;
  const std::string folder = open.path.substr(0, open.path.rfind('/'));
  if (disk.SyncFolder(folder) != DiskError::kNone) {
    return SQLITE_IOERR_DIR_FSYNC;
  }
  open.new_name = false;
  return SQLITE_OK;
}

int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  const OpenFile& open = Of(file);
  *size = open.temporary != nullptr
              ? static_cast<sqlite3_int64>(open.temporary->size())
              : SimDisk::SizeOf(*open.file);
  return SQLITE_OK;
}

int Lock(sqlite3_file* file, int level) {
  OpenFile& open = Of(file);
  if (open.lock >= level || open.shared == nullptr) return SQLITE_OK;
  Shared& shared = *open.shared;
  if (level == SQLITE_LOCK_SHARED) {
    if (shared.pending != nullptr || shared.exclusive != nullptr) {
      return SQLITE_BUSY;
    }
    ++shared.readers;
  } else if (level == SQLITE_LOCK_RESERVED) {
    if (shared.reserved != nullptr) return SQLITE_BUSY;
    shared.reserved = &open;
  } else {
    if (shared.pending != nullptr && shared.pending != &open) {
      return SQLITE_BUSY;
    }
    shared.pending = &open;
    open.lock = SQLITE_LOCK_PENDING;
    if (shared.readers > 1) return SQLITE_BUSY;
    shared.exclusive = &open;
  }
  open.lock = level;
  return SQLITE_OK;
}

int CheckReserved(sqlite3_file* file, int* reserved) {
  const OpenFile& open = Of(file);
  *reserved = open.shared != nullptr && open.shared->reserved != nullptr;
  return SQLITE_OK;
}

int Control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int SectorSize(sqlite3_file*) { return kSectorBytes; }
int Characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int MapMemory(sqlite3_file* file, int region, int size, int extend,
              void volatile** out) {
  std::vector<std::unique_ptr<std::string>>& memory = Of(file).shared->memory;
  *out = nullptr;
  const auto wanted = static_cast<size_t>(region);
  if (wanted >= memory.size() && extend == 0) return SQLITE_OK;
  while (memory.size() <= wanted) {
    memory.push_back(
        std::make_unique<std::string>(static_cast<size_t>(size), '\0'));
  }
  *out = memory[wanted]->data();
  return SQLITE_OK;
}

int LockMemory(sqlite3_file* file, int offset, int count, int flags) {
  OpenFile& open = Of(file);
  Shared& shared = *open.shared;
  const bool locks = (flags & SQLITE_SHM_LOCK) != 0;
  const bool alone = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
  if (locks) {
    for (int i = offset; i < offset + count; ++i) {
      const auto slot = static_cast<size_t>(i);
      const int own = (open.shared_locks & (1u << i)) != 0 ? 1 : 0;
      const bool taken = shared.exclusive_locks[slot] != nullptr &&
                         shared.exclusive_locks[slot] != &open;
      if (taken || (alone && shared.shared_locks[slot] > own)) {
        return SQLITE_BUSY;
      }
    }
  }
  for (int i = offset; i < offset + count; ++i) {
    const auto slot = static_cast<size_t>(i);
    const uint32_t bit = 1u << i;
    if (alone) {
      shared.exclusive_locks[slot] = locks ? &open : nullptr;
    } else if (locks && (open.shared_locks & bit) == 0) {
      ++shared.shared_locks[slot];
      open.shared_locks |= bit;
    } else if (!locks && (open.shared_locks & bit) != 0) {
      --shared.shared_locks[slot];
      open.shared_locks &= ~bit;
    }
  }
  return SQLITE_OK;
}

void Barrier(sqlite3_file*) {}

constexpr sqlite3_io_methods kMethods = {2,
                                         Close,
                                         Read,
                                         Write,
                                         Truncate,
                                         Sync,
                                         FileSize,
                                         Lock,
                                         Unlock,
                                         CheckReserved,
                                         Control,
                                         SectorSize,
                                         Characteristics,
                                         MapMemory,
                                         LockMemory,
                                         Barrier,
                                         ReleaseMemory,
                                         nullptr,
                                         nullptr};

int Open(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags,
         int* out_flags) {
  State& state = TheState();
  file->pMethods = nullptr;
  SimDisk::FilePtr found;
  if (path != nullptr) {
    DiskError error = DiskError::kNone;
    found = state.disk->Open(path, (flags & SQLITE_OPEN_CREATE) != 0, &error);
    if (found == nullptr) return SQLITE_CANTOPEN;
  }
  auto* open = new (file) OpenFile();
  open->base.pMethods = &kMethods;
  open->file = std::move(found);
  if (path == nullptr) {
    open->temporary = std::make_unique<std::string>();
  } else {
    open->path = path;
    open->new_name =
        (flags & SQLITE_OPEN_CREATE) != 0 && (flags & SQLITE_OPEN_MAIN_DB) == 0;
    if ((flags & SQLITE_OPEN_MAIN_DB) != 0) {
      open->shared = &state.shared[open->file.get()];
      ++open->shared->users;
    }
  }
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs*, const char* path, int sync_folder) {
  SimDisk& disk = *TheState().disk;
  const std::string name(path);
  const DiskError error = disk.Remove(name);
  if (error == DiskError::kNoEntry) return SQLITE_IOERR_DELETE_NOENT;
  if (error != DiskError::kNone) return SQLITE_IOERR_DELETE;
  if (sync_folder == 0) return SQLITE_OK;
  return CodeOf(disk.SyncFolder(name.substr(0, name.rfind('/'))),
                SQLITE_IOERR_DIR_FSYNC);
}

int Access(sqlite3_vfs*, const char* path, int, int* result) {
  *result = TheState().disk->Exists(path) ? 1 : 0;
  return SQLITE_OK;
}

int FullPath(sqlite3_vfs*, const char* path, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", path);
  return SQLITE_OK;
}

int Randomness(sqlite3_vfs*, int size, char* out) {
  for (int i = 0; i < size; ++i) {
    out[i] = static_cast<char>(TheState().random.Next());
  }
  return size;
}

int Sleep(sqlite3_vfs*, int microseconds) { return microseconds; }
int LastError(sqlite3_vfs*, int, char*) { return 0; }
// Julian day; no time of ours comes from it.
int CurrentTime(sqlite3_vfs*, sqlite3_int64* time) {
  *time = sqlite3_int64{2460000} * 86400000;
  return SQLITE_OK;
}
int CurrentDay(sqlite3_vfs*, double* day) {
  *day = 2460000;
  return SQLITE_OK;
}

sqlite3_vfs* TheVfs() {
  static sqlite3_vfs* const vfs = [] {
    auto* made = new sqlite3_vfs();
    made->iVersion = 2;
    made->szOsFile = sizeof(OpenFile);
    made->mxPathname = kMaxPath;
    made->zName = "simulated";
    made->xOpen = Open;
    made->xDelete = Delete;
    made->xAccess = Access;
    made->xFullPathname = FullPath;
    made->xRandomness = Randomness;
    made->xSleep = Sleep;
    made->xCurrentTime = CurrentDay;
    made->xGetLastError = LastError;
    made->xCurrentTimeInt64 = CurrentTime;
    // There is one thread, and nobody asks how much memory is used.
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_vfs_register(made, 1);
    return made;
  }();
  return vfs;
}

}  // namespace

void UseForSqlite(SimDisk* disk, uint64_t seed) {
  TheVfs();
  State& state = TheState();
  state.disk = disk;
  state.random = Random(seed);
  // The next number is drawn anew from the VFS.
  sqlite3_randomness(0, nullptr);
}

}  // namespace optfarm::simulation
