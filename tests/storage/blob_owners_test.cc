// Which blobs count for which project, what is given back, and whose bytes may
// go.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "storage/metadata_store.h"
#include "tests/storage/sample_job.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Outcome = BlobRemoval::Outcome;

class BlobOwnersTest : public MetadataStoreTest {
 protected:
  // A job of the project with its model, data and an artifact.
  void AddJob(const std::string& id, const std::string& project = "vision",
              v1::JobState state = v1::SUCCEEDED) {
    NewJob job = SampleJob(id);
    job.job.project = project;
    job.job.spec.mutable_model()->mutable_digest()->set_sha256("model");
    job.blobs = {"model", "data", "made-of-" + id};
    v1::Artifact& artifact = job.tasks[0].artifacts.emplace_back();
    artifact.set_name("optimized.pb");
    artifact.mutable_digest()->set_sha256("made-of-" + id);
    artifact.mutable_digest()->set_size_bytes(7);
    WriteBatch batch;
    batch.new_jobs.push_back(job);
    batch.jobs.push_back(job.job);
    batch.jobs[0].state = state;
    if (state > v1::RUNNING) batch.jobs[0].end_time = kNow;
    batch.project_blobs.push_back({project, {"model", 10}});
    batch.project_blobs.push_back({project, {"data", 3}});
    batch.made_blobs.push_back({project, {"made-of-" + id, 7}});
    ASSERT_THAT(store_->Commit(batch), IsOk());
  }
  std::vector<ProjectBlobRecord> List(const std::string& project = "vision") {
    const auto blobs = store_->ListProjectBlobs(project, {});
    EXPECT_THAT(blobs, IsOk());
    return blobs.value_or(std::vector<ProjectBlobRecord>());
  }
  BlobRemoval Remove(const std::string& sha256,
                     const std::string& project = "vision") {
    const auto removal = store_->RemoveProjectBlob(project, sha256);
    EXPECT_THAT(removal, IsOk());
    return removal.value_or(BlobRemoval());
  }
  int64_t Used(const std::string& project = "vision") {
    return store_->GetProjectUsage(project, kNow)->bytes;
  }
  // Those that were removed and that nobody has.
  std::vector<std::string> Orphans() {
    std::vector<std::string> orphans;
    const std::vector<RemovedBlob> removed =
        store_->ListRemovedBlobs("", 100).value();
    for (const RemovedBlob& blob : removed) {
      if (!blob.has_owner) orphans.push_back(blob.sha256);
    }
    return orphans;
  }
};

TEST_P(BlobOwnersTest, ListsLargestFirstWithWhatEachIsForByPage) {
  AddJob("aaa1");
  AddJob("aaa2", "vision", v1::RUNNING);
  AddJob("bbb1", "audio");
  EXPECT_EQ(Used(), 10 + 3 + 7 + 7);
  const std::vector<ProjectBlobRecord> blobs = List();
  ASSERT_THAT(blobs, SizeIs(4));
  EXPECT_EQ(blobs[0].id, (BlobId{"model", 10}));
  EXPECT_EQ(blobs[0].jobs, 2);
  EXPECT_EQ(blobs[0].live_jobs, 1);
  ASSERT_THAT(blobs[0].uses, SizeIs(2));
  EXPECT_EQ(blobs[0].uses[0].job_id, "aaa2");
  EXPECT_EQ(blobs[0].uses[0].kind, BlobUseRecord::Kind::kModel);
  EXPECT_EQ(blobs[0].uses[0].name, "aaa2.pb");
  EXPECT_TRUE(blobs[0].uses[0].live);
  EXPECT_FALSE(blobs[0].uses[1].live);
  EXPECT_EQ(blobs[1].id, (BlobId{"made-of-aaa2", 7}));
  EXPECT_EQ(blobs[1].uses[0].kind, BlobUseRecord::Kind::kArtifact);
  EXPECT_EQ(blobs[1].uses[0].name, "optimized.pb");
  EXPECT_EQ(blobs[2].id, (BlobId{"made-of-aaa1", 7}));
  EXPECT_EQ(blobs[3].id, (BlobId{"data", 3}));
  EXPECT_EQ(blobs[3].uses[0].kind, BlobUseRecord::Kind::kData);

  BlobPageRequest page;
  page.limit = 1;
  for (const ProjectBlobRecord& blob : blobs) {
    const auto one = store_->ListProjectBlobs("vision", page);
    ASSERT_THAT(*one, SizeIs(1));
    EXPECT_EQ((*one)[0].id, blob.id);
    EXPECT_EQ((*one)[0].uses.size(), blob.uses.size());
    page.after = (*one)[0].id;
  }
  EXPECT_THAT(*store_->ListProjectBlobs("vision", page), IsEmpty());
  EXPECT_THAT(List("'; DROP TABLE jobs; --"), IsEmpty());
}

TEST_P(BlobOwnersTest, OnlyTheNewestUsesAreNamedAndAllAreCounted) {
  for (const char* id : {"aaa1", "aaa2", "aaa3", "aaa4", "aaa5"}) AddJob(id);
  const std::vector<ProjectBlobRecord> blobs = List();
  EXPECT_EQ(blobs[0].jobs, 5);
  ASSERT_THAT(blobs[0].uses, SizeIs(kBlobUses));
  EXPECT_EQ(blobs[0].uses[0].job_id, "aaa5");
}

TEST_P(BlobOwnersTest, WhatALiveJobNeedsStays) {
  AddJob("aaa1", "vision", v1::QUEUED);
  EXPECT_EQ(Remove("model").outcome, Outcome::kNeeded);
  EXPECT_EQ(Remove("model").job_id, "aaa1");
  EXPECT_EQ(Remove("made-of-aaa1").outcome, Outcome::kNeeded);
  EXPECT_EQ(Used(), 20);
  EXPECT_TRUE(*store_->ProjectHasBlob("vision", "model"));
  // Another project's live job does not hold it for this one.
  AddJob("bbb1", "audio");
  EXPECT_EQ(Remove("model", "audio").outcome, Outcome::kRemoved);
  EXPECT_THAT(Orphans(), IsEmpty());
}

TEST_P(BlobOwnersTest, WhatIsRemovedIsGivenBackAndGoesWhenNobodyHasIt) {
  AddJob("aaa1");
  AddJob("bbb1", "audio");
  const BlobRemoval removal = Remove("model");
  EXPECT_EQ(removal.outcome, Outcome::kRemoved);
  EXPECT_EQ(removal.given_back_bytes, 10);
  EXPECT_FALSE(removal.is_orphan);
  EXPECT_EQ(Used(), 10);
  EXPECT_EQ(Used("audio"), 20);
  // The job that has ended does not bring it back.
  EXPECT_FALSE(*store_->ProjectHasBlob("vision", "model"));
  EXPECT_TRUE(*store_->ProjectHasBlob("audio", "model"));
  EXPECT_EQ(Remove("model").outcome, Outcome::kNotThere);
  EXPECT_EQ(Remove("never").outcome, Outcome::kNotThere);
  EXPECT_TRUE(Remove("model", "audio").is_orphan);
  EXPECT_TRUE(Remove("made-of-aaa1").is_orphan);
  EXPECT_THAT(Orphans(), ElementsAre("made-of-aaa1", "model"));
  // Brought again it is no orphan.
  WriteBatch batch;
  batch.project_blobs.push_back({"audio", {"model", 10}});
  ASSERT_THAT(store_->Commit(batch), IsOk());
  EXPECT_THAT(Orphans(), ElementsAre("made-of-aaa1"));
  ASSERT_THAT(store_->ForgetRemovedBlobs({"made-of-aaa1"}), IsOk());
  EXPECT_THAT(*store_->ListRemovedBlobs("", 100), SizeIs(1));
  EXPECT_THAT(*store_->ListRemovedBlobs("model", 100), IsEmpty());
  Reopen();
  EXPECT_THAT(*store_->ListRemovedBlobs("", 100), SizeIs(1));
}

TEST_P(BlobOwnersTest, WhatWasEvictedCountsForNobody) {
  AddJob("aaa1");
  AddJob("bbb1", "audio");
  ASSERT_THAT(store_->GiveBackBlobs({"model", "never"}), IsOk());
  EXPECT_EQ(Used(), 10);
  EXPECT_EQ(Used("audio"), 10);
  EXPECT_THAT(Orphans(), IsEmpty());
}

TEST_P(BlobOwnersTest, WhatJobsMadeGoesWithTheLastOfThem) {
  AddJob("aaa1");
  AddJob("aaa2", "vision", v1::RUNNING);
  WriteBatch batch;
  // A job that took the outcome over, and a file that the project brought too.
  batch.job_blobs.emplace_back("aaa2", "made-of-aaa1");
  batch.made_blobs.push_back({"vision", {"brought", 1}});
  batch.job_blobs.emplace_back("aaa1", "brought");
  batch.project_blobs.push_back({"vision", {"brought", 1}});
  batch.made_blobs.push_back({"vision", {"scratch", 2}});
  batch.job_blobs.emplace_back("aaa1", "scratch");
  ASSERT_THAT(store_->Commit(batch), IsOk());
  EXPECT_EQ(Used(), 10 + 3 + 7 + 7 + 1 + 2);
  RetentionPolicy policy;
  policy.jobs_before = kNow + absl::Seconds(1);
  EXPECT_EQ(store_->Prune(policy)->jobs, 1);
  EXPECT_EQ(Used(), 10 + 3 + 7 + 7 + 1);
  EXPECT_THAT(Orphans(), ElementsAre("scratch"));
}

TEST_P(BlobOwnersTest, ADeletedDeviceIsForgottenWithItsStates) {
  WriteBatch batch;
  for (const char* name : {"pi4", "pi5"}) {
    DeviceRecord device;
    device.info.set_name(name);
    device.first_seen = device.last_seen = kNow;
    batch.devices.push_back(device);
    batch.device_states.push_back({0, name, v1::Device::AVAILABLE, "", kNow});
  }
  ASSERT_THAT(store_->Commit(batch), IsOk());
  WriteBatch deletion;
  deletion.deleted_devices = {"pi4"};
  ASSERT_THAT(store_->Commit(deletion), IsOk());
  ASSERT_THAT(*store_->ListDevices(), SizeIs(1));
  EXPECT_EQ((*store_->ListDevices())[0].info.name(), "pi5");
  EXPECT_THAT(*store_->ListDeviceStates("pi4", {}), IsEmpty());
  EXPECT_THAT(*store_->LatestDeviceStates(), SizeIs(1));
}

OPTFARM_INSTANTIATE_ENGINES(BlobOwnersTest);

}  // namespace
}  // namespace optfarm::storage
