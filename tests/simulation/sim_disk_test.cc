// The simulated disk loses what a disk may lose and nothing else; and what the
// simulation found out about the stores, each by itself.

#include "tests/simulation/sim_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "storage/file_blob_store.h"
#include "storage/sqlite/metadata_store.h"
#include "tests/simulation/sim_file_system.h"
#include "tests/simulation/sim_sqlite.h"
#include "tests/support/status_matchers.h"

namespace optfarm::simulation {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1700000000);

std::string Contents(SimDisk& disk, const std::string& path) {
  return ReadFile(disk, path).value_or("none");
}

TEST(SimDiskTest, WhatIsSyncedSurvivesAndTheRestMayNot) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    SimDisk disk(seed, "/data");
    DiskError error = DiskError::kNone;
    const auto file = disk.Open("/data/a", true, &error);
    ASSERT_NE(file, nullptr);
    disk.Write(*file, 0, "old");
    disk.Sync(*file);
    disk.SyncFolder("/data");
    disk.Write(*file, 0, "new");
    disk.Open("/data/b", true, &error);
    disk.StopNow(Stop::kPower);
    disk.StartAgain();
    seen.insert(Contents(disk, "/data/a"));
    seen.insert(disk.Exists("/data/b") ? "b" : "no b");
  }
  EXPECT_THAT(seen, ::testing::UnorderedElementsAre("old", "new", "b", "no b"));
}

TEST(SimDiskTest, AProcessThatEndsLosesNothing) {
  SimDisk disk(1, "/data");
  ASSERT_THAT(WriteFileAtomically(disk, "/data/a", "bytes"),
              optfarm::testing::IsOk());
  disk.StopNow(Stop::kProcess);
  EXPECT_FALSE(WriteFileAtomically(disk, "/data/a", "later").ok());
  disk.StartAgain();
  EXPECT_EQ(Contents(disk, "/data/a"), "bytes");
}

// A blob whose folders could not be synced was refused; the next server finds
// its file and says that it is there, so it has to make it durable.
TEST(SimDiskTest, ABlobThatAStoreFindsSurvivesAPowerFailure) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SimDisk disk(seed, "/data");
    SimFileSystem files(disk);
    storage::FileBlobStoreOptions options;
    options.root = "/data/blobs";
    options.files = &files;
    {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto store,
                                   storage::OpenFileBlobStore(options));
      disk.faults.sync = 0.5;
      const auto ignored = storage::PutBlob(*store, "blob", kNow);
      disk.faults.sync = 0;
      disk.StopNow(Stop::kProcess);
    }
    disk.StartAgain();
    bool is_there = false;
    const storage::BlobId id{
        "fa2c8cc4f28176bbeed4b736df569a34c79cd3723e9ec42f9674b4d46ac6b8b8", 4};
    for (const bool after_power_failure : {false, true}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto store,
                                   storage::OpenFileBlobStore(options));
      OPTFARM_ASSERT_OK_AND_ASSIGN(const bool here, store->Contains(id, kNow));
      if (after_power_failure) {
        EXPECT_GE(here, is_there) << "seed " << seed;
      }
      is_there = here;
      found += here ? 1 : 0;
      disk.StopNow(Stop::kPower);
      disk.StartAgain();
    }
  }
  EXPECT_GT(found, 0);
}

// A disk that cannot be read for a moment is no reason to fetch a backup.
TEST(SimDiskTest, AReadErrorIsNotToldAsADamagedDatabase) {
  SimDisk disk(1, "/data");
  UseForSqlite(&disk, 1);
  const auto open = [] {
    return storage::OpenSqliteMetadataStore("/data/db", kNow).status();
  };
  ASSERT_THAT(open(), optfarm::testing::IsOk());
  int failed = 0;
  disk.faults.read = 0.01;
  for (int i = 0; i < 300; ++i) {
    const absl::Status status = open();
    if (status.ok()) continue;
    ++failed;
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  }
  EXPECT_GT(failed, 0);
  disk.faults.read = 0;
  EXPECT_THAT(open(), optfarm::testing::IsOk());
}

using Devices = std::set<std::string>;

// Keeps devices until the store refuses; returns those that are kept.
Devices KeepDevices(storage::MetadataStore& store, int round) {
  Devices kept;
  for (int i = 0; i < 40; ++i) {
    storage::WriteBatch batch;
    storage::DeviceRecord& device = batch.devices.emplace_back();
    const std::string name = absl::StrCat("device-", round, "-", i);
    device.info.set_name(name);
    device.first_seen = device.last_seen = kNow;
    // Several pages.
    device.reason = std::string(9000, 'x');
    if (store.Commit(batch).ok()) kept.insert(name);
  }
  return kept;
}

// After a failed sync a log looks longer than it is on the disk. A server that
// starts then must not build on that.
TEST(SimDiskTest, ALogThatCouldNotBeSyncedDamagesNoDatabase) {
  int refused = 0;
  size_t kept_in_all = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SimDisk disk(seed, "/data");
    UseForSqlite(&disk, seed);
    Devices kept;
    for (int round = 0; round < 6; ++round) {
      disk.faults.sync = round % 2 == 0 ? 0 : 0.5;
      auto store = storage::OpenSqliteMetadataStore("/data/db", kNow);
      if (store.ok()) {
        const Devices more = KeepDevices(**store, round);
        refused += 40 - static_cast<int>(more.size());
        kept.insert(more.begin(), more.end());
      } else {
        ASSERT_TRUE(absl::IsUnavailable(store.status()))
            << "seed " << seed << ": " << store.status();
      }
      disk.StopNow(round % 3 == 2 ? Stop::kPower : Stop::kProcess);
      // The store ends before the disk starts again.
      store = absl::UnavailableError("stopped");
      disk.StartAgain();
    }
    disk.faults.sync = 0;
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto store, storage::OpenSqliteMetadataStore("/data/db", kNow));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto devices, store->ListDevices());
    Devices found;
    for (const auto& device : devices) found.insert(device.info.name());
    EXPECT_THAT(found, ::testing::IsSupersetOf(kept)) << "seed " << seed;
    kept_in_all += kept.size();
  }
  EXPECT_GT(kept_in_all, 1000);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace optfarm::simulation
