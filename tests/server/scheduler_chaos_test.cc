// Everything at once: lost answers, forgotten and repeated work, wrong
// attempts, cancelled jobs, a disk that fills up now and then, restarts, time
// that passes. Whatever happens, promises hold: every job ends, what has ended
// stays as it is, and no result is taken twice. The seed makes a run
// repeatable.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/scheduler_fixture.h"

namespace optfarm::server {
namespace {

// Refuses a part of the commits, as a full disk does: before anything changes.
class FlakyStore final : public storage::MetadataStore {
 public:
  FlakyStore(storage::MetadataStore& store, std::mt19937& random)
      : store_(store), random_(random) {}

  bool flaky = true;
  // All commits.
  bool refuse = false;

  absl::Status Commit(const storage::WriteBatch& batch) override {
    if (refuse || (flaky && random_() % 10 == 0)) {
      return absl::ResourceExhaustedError("disk full, for now");
    }
    return store_.Commit(batch);
  }
  absl::StatusOr<std::optional<storage::RequestMatch>> FindClientRequest(
      const std::string& id) override {
    return store_.FindClientRequest(id);
  }
  absl::StatusOr<storage::StoredJob> GetJob(const std::string& id) override {
    return store_.GetJob(id);
  }
  absl::StatusOr<storage::TaskRecord> GetTask(const std::string& id) override {
    return store_.GetTask(id);
  }
  absl::StatusOr<std::vector<storage::StoredJob>> ListJobs(
      const storage::JobFilter& filter,
      const storage::PageRequest& page) override {
    return store_.ListJobs(filter, page);
  }
  absl::StatusOr<std::vector<storage::StoredJob>> LoadLiveJobs() override {
    return store_.LoadLiveJobs();
  }
  absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(const std::string& id,
                                                       int64_t after, int limit,
                                                       bool logs) override {
    return store_.ReadEvents(id, after, limit, logs);
  }
  absl::StatusOr<v1::Report> GetReport(const std::string& id) override {
    return store_.GetReport(id);
  }
  absl::StatusOr<std::vector<storage::MeasurementRecord>> QueryMeasurements(
      const storage::MeasurementFilter& filter,
      const storage::PageRequest& page) override {
    return store_.QueryMeasurements(filter, page);
  }
  absl::StatusOr<storage::SeriesList> ListSeries(
      const storage::MeasurementFilter& filter,
      const storage::SeriesRequest& request) override {
    return store_.ListSeries(filter, request);
  }
  absl::StatusOr<std::vector<storage::MeasurementRecord>> GetMeasurements(
      absl::Span<const int64_t> result_ids) override {
    return store_.GetMeasurements(result_ids);
  }
  absl::Status AddDetails(
      absl::Span<storage::PointRecord* const> points) override {
    return store_.AddDetails(points);
  }
  absl::StatusOr<storage::RetentionCounts> Prune(
      const storage::RetentionPolicy& policy) override {
    return store_.Prune(policy);
  }
  absl::Status Backup(const std::string& path) override {
    return store_.Backup(path);
  }
  absl::StatusOr<std::optional<std::string>> FindAction(
      const std::string& digest, const std::string& version) override {
    return store_.FindAction(digest, version);
  }
  absl::StatusOr<std::vector<storage::DeviceRecord>> ListDevices() override {
    return store_.ListDevices();
  }
  absl::StatusOr<std::vector<storage::DeviceStateRecord>> ListDeviceStates(
      const std::string& device, const storage::PageRequest& page) override {
    return store_.ListDeviceStates(device, page);
  }
  absl::StatusOr<std::vector<storage::DeviceStateRecord>> LatestDeviceStates()
      override {
    return store_.LatestDeviceStates();
  }
  absl::StatusOr<std::vector<std::string>> ListProjects(
      const std::string& after, int limit) override {
    return store_.ListProjects(after, limit);
  }
  absl::StatusOr<std::vector<v1::Recipe>> ListRecipes() override {
    return store_.ListRecipes();
  }
  absl::StatusOr<bool> ProjectHasBlob(const std::string& project,
                                      const std::string& sha256) override {
    return store_.ProjectHasBlob(project, sha256);
  }
  absl::StatusOr<bool> AnyJobHasBlob(absl::Span<const std::string> job_ids,
                                     const std::string& sha256) override {
    return store_.AnyJobHasBlob(job_ids, sha256);
  }
  absl::StatusOr<storage::ProjectUsage> GetProjectUsage(
      const std::string& project, absl::Time since) override {
    return store_.GetProjectUsage(project, since);
  }
  absl::StatusOr<std::vector<storage::ProjectBlobRecord>> ListProjectBlobs(
      const std::string& project,
      const storage::BlobPageRequest& page) override {
    return store_.ListProjectBlobs(project, page);
  }
  absl::StatusOr<storage::BlobRemoval> RemoveProjectBlob(
      const std::string& project, const std::string& sha256) override {
    return store_.RemoveProjectBlob(project, sha256);
  }
  absl::Status GiveBackBlobs(absl::Span<const std::string> sha256) override {
    return store_.GiveBackBlobs(sha256);
  }
  absl::StatusOr<std::vector<storage::RemovedBlob>> ListRemovedBlobs(
      const std::string& after, int limit) override {
    return store_.ListRemovedBlobs(after, limit);
  }
  absl::Status ForgetRemovedBlobs(
      absl::Span<const std::string> sha256) override {
    return store_.ForgetRemovedBlobs(sha256);
  }
  absl::StatusOr<absl::flat_hash_set<std::string>> LiveBlobs() override {
    return store_.LiveBlobs();
  }

 private:
  storage::MetadataStore& store_;
  std::mt19937& random_;
};

// A worker or agent as it sees itself.
struct Party {
  v1::SynchronizeRequest identity;
  // Leases it knows of, and what it will say about each.
  std::vector<std::pair<v1::LeasedTask, v1::Completion>> held;
};

class SchedulerChaosTest : public SchedulerFixture,
                           public ::testing::WithParamInterface<uint32_t> {
 protected:
  void SetUp() override {
    SchedulerFixture::SetUp();
    random_.seed(GetParam());
    RestartFlaky();
    NewProcesses();
    Exchange(parties_[2]);
  }
  void TearDown() override {
    scheduler_.reset();
    flaky_.reset();
    SchedulerFixture::TearDown();
  }

  int Pick(int count) {
    return static_cast<int>(random_() % static_cast<uint32_t>(count));
  }

  void RestartFlaky() {
    const bool was_flaky = flaky_ == nullptr || flaky_->flaky;
    Restart();
    flaky_ = std::make_unique<FlakyStore>(*store_, random_);
    flaky_->flaky = was_flaky;
    scheduler_ =
        std::make_unique<Scheduler>(*flaky_, *blobs_, options_, "server-1");
    OPTFARM_ASSERT_OK(scheduler_->Load(now_));
  }

  // Two workers and an agent with two devices, all killed and started anew.
  void NewProcesses() {
    ++generation_;
    const std::string suffix = std::to_string(generation_);
    parties_.clear();
    parties_.push_back({WorkerCall("worker-1." + suffix, 2), {}});
    parties_.push_back({WorkerCall("worker-2." + suffix, 1), {}});
    parties_.push_back({AgentCall("pi4", true, "agent-1." + suffix), {}});
    v1::DeviceStatus& second = *parties_[2].identity.add_devices();
    second.mutable_info()->set_name("pi5");
    second.set_ready(true);
  }

  v1::Completion Outcome(const v1::LeasedTask& lease, bool benign) {
    const int choice = benign ? 9 : Pick(10);
    if (choice == 0) return Failing(v1::Failure::USER);
    if (choice == 1) return Failing(v1::Failure::INTERNAL);
    if (choice == 2) return v1::Completion();  // malformed
    if (choice == 3) {
      v1::Completion released;
      released.mutable_released()->set_reason("tired");
      return released;
    }
    return lease.has_benchmark() ? GoodBenchmark(lease.benchmark().device())
                                 : GoodReport();
  }

  void Exchange(Party& party, bool benign = false) {
    v1::SynchronizeRequest request = party.identity;
    for (auto& [lease, completion] : party.held) {
      // Forgotten by a bug of its own.
      if (!benign && Pick(30) == 0) continue;
      v1::HeldTask& held = Hold(request, lease);
      held.set_progress(Pick(100) / 100.0);
      if (!benign && Pick(20) == 0) held.set_attempt(Pick(5));
      if (completion.outcome_case() != v1::Completion::OUTCOME_NOT_SET ||
          benign || Pick(3) == 0) {
        completion = Outcome(lease, benign);
        *held.mutable_completion() = completion;
      }
    }
    const auto result = scheduler_->Synchronize(
        request, scheduler_->BeginCall(request.participant_id()), now_);
    if (!result.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(result.status()))
          << result.status();
      return;
    }
    if (!benign && Pick(8) == 0) return;  // the answer got lost
    for (const v1::TaskVerdict& verdict : result->response.verdicts()) {
      if (verdict.verdict() == v1::TaskVerdict::CONTINUE) continue;
      std::erase_if(party.held, [&](const auto& entry) {
        return entry.first.task_id() == verdict.task_id() &&
               entry.first.attempt() == verdict.attempt();
      });
    }
    for (const v1::LeasedTask& lease : result->response.new_tasks()) {
      NoteLease(lease);
      party.held.emplace_back(lease, v1::Completion());
    }
  }

  // One attempt number is never given to two processes.
  void NoteLease(const v1::LeasedTask& lease) {
    const auto key = std::make_pair(lease.task_id(), lease.attempt());
    const auto record = store_->GetTask(lease.task_id());
    ASSERT_TRUE(record.ok());
    const auto [known, added] = holder_of_.emplace(key, record->participant_id);
    EXPECT_EQ(known->second, record->participant_id);
  }

  void RandomStep() {
    switch (Pick(12)) {
      case 0: {
        std::vector<std::string> devices;
        if (Pick(2) == 0) devices.push_back("pi4");
        if (Pick(2) == 0) devices.push_back("pi5");
        v1::JobSpec spec = Spec(devices);
        spec.set_no_cache(Pick(3) > 0);
        const auto job = Submit(spec);
        if (job.ok()) jobs_.insert(job->job_id);
        return;
      }
      case 1:
        if (jobs_.empty() || Pick(4) > 0) return;
        (void)scheduler_->Cancel(
            *std::next(jobs_.begin(), Pick(static_cast<int>(jobs_.size()))), "",
            now_);
        return;
      case 2:
        if (Pick(6) == 0) RestartFlaky();
        return;
      case 3:
        if (Pick(8) == 0) NewProcesses();
        return;
      case 4:
      case 5:
        now_ += absl::Seconds(Pick(40));
        scheduler_->Tick(now_);
        return;
      default:
        Exchange(parties_[static_cast<size_t>(Pick(3))]);
    }
  }

  void CheckEndedStaysEnded() {
    for (const std::string& job_id : jobs_) {
      const storage::StoredJob job = Job(job_id);
      const auto ended = ended_.find(job_id);
      if (ended != ended_.end()) {
        EXPECT_EQ(job.job.state, ended->second.first) << job_id;
        EXPECT_EQ(job.last_event_sequence, ended->second.second) << job_id;
      } else if (HasEnded(job.job.state)) {
        ended_[job_id] = {job.job.state, job.last_event_sequence};
      }
    }
  }

  void CheckResults(const std::string& job_id) {
    const storage::StoredJob job = Job(job_id);
    EXPECT_TRUE(HasEnded(job.job.state)) << job_id;
    storage::MeasurementFilter filter;
    filter.job_id = job_id;
    std::map<std::string, int> rows;
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto measured_rows,
                                 store_->QueryMeasurements(filter, {0, 1000}));
    for (const storage::MeasurementRecord& row : measured_rows) {
      ++rows[row.task_id];
    }
    for (const storage::TaskRecord& task : job.tasks) {
      EXPECT_TRUE(HasEnded(task.state)) << task.task_id;
      const bool measured =
          task.kind == v1::BENCHMARK && task.state == v1::TASK_DONE;
      EXPECT_EQ(rows[task.task_id], measured ? 2 : 0) << task.task_id;
    }
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto events,
                                 store_->ReadEvents(job_id, 0, 100000, true));
    int ends = 0;
    for (size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(events[i].sequence(), static_cast<int64_t>(i) + 1);
      if (events[i].has_job_state()) {
        ends += HasEnded(events[i].job_state().state()) ? 1 : 0;
      }
    }
    EXPECT_EQ(ends, 1) << job_id;
  }

  std::mt19937 random_;
  std::unique_ptr<FlakyStore> flaky_;
  std::vector<Party> parties_;
  int generation_ = 0;
  std::set<std::string> jobs_;
  std::map<std::string, std::pair<v1::JobState, int64_t>> ended_;
  std::map<std::pair<std::string, int>, std::string> holder_of_;
};

TEST_P(SchedulerChaosTest, PromisesHold) {
  for (int step = 0; step < 500; ++step) {
    RandomStep();
    if (step % 50 == 0) CheckEndedStaysEnded();
  }
  flaky_->flaky = false;
  // Peace: everybody does what they should, and everything comes to its end.
  for (int round = 0; round < 200 && !store_->LoadLiveJobs()->empty();
       ++round) {
    now_ += absl::Seconds(20);
    scheduler_->Tick(now_);
    for (Party& party : parties_) Exchange(party, /*benign=*/true);
  }
  CheckEndedStaysEnded();
  EXPECT_FALSE(jobs_.empty());
  for (const std::string& job_id : jobs_) CheckResults(job_id);
}

class RefusedCommitTest : public SchedulerFixture {
 protected:
  void SetUp() override {
    SchedulerFixture::SetUp();
    flaky_ = std::make_unique<FlakyStore>(*store_, random_);
    flaky_->flaky = false;
    scheduler_ = std::make_unique<Scheduler>(*flaky_, *blobs_, options_, "1");
    OPTFARM_ASSERT_OK(scheduler_->Load(now_));
  }
  absl::Status Refused(const v1::SynchronizeRequest& request) {
    flaky_->refuse = true;
    const absl::Status status =
        scheduler_
            ->Synchronize(request,
                          scheduler_->BeginCall(request.participant_id()), now_)
            .status();
    flaky_->refuse = false;
    return status;
  }
  void TearDown() override {
    scheduler_.reset();
    SchedulerFixture::TearDown();
  }

  std::mt19937 random_;
  std::unique_ptr<FlakyStore> flaky_;
};

TEST_F(RefusedCommitTest, AReportThatComesAgainCountsOnce) {
  Call(AgentCall());
  v1::JobSpec spec = Spec({"pi4"});
  SubmitOk(spec);
  Complete(LeaseToWorker(), GoodReport());
  const v1::LeasedTask lease = Lease(AgentCall());
  v1::SynchronizeRequest report = AgentCall();
  *Hold(report, lease).mutable_completion() = Failing(v1::Failure::INTERNAL);
  // The disk is full for a while, and the agent tries on.
  for (int i = 0; i < 20; ++i) {
    now_ += absl::Seconds(1);
    EXPECT_TRUE(absl::IsResourceExhausted(Refused(report)));
  }
  EXPECT_EQ(Call(report).verdicts(0).verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto devices, store_->ListDevices());
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].failures_in_a_row, 1);
  EXPECT_EQ(devices[0].quarantined_until, absl::InfinitePast());
}

TEST_F(RefusedCommitTest, WhatWasNotWrittenIsNotKnown) {
  v1::SynchronizeRequest worker = WorkerCall();
  worker.add_builtin_recipes()->set_name("new");
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(worker)));
  EXPECT_TRUE(absl::IsNotFound(scheduler_->FindRecipe("new").status()));
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(AgentCall())));
  EXPECT_TRUE(absl::IsNotFound(scheduler_->FindDevice("pi4", now_).status()));
  // The next call brings it, durably.
  Call(worker);
  Call(AgentCall());
  EXPECT_TRUE(scheduler_->FindRecipe("new").ok());
  EXPECT_EQ(store_->ListRecipes()->size(), 1u);
  EXPECT_EQ(store_->ListDevices()->size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SchedulerChaosTest,
                         ::testing::Values(1u, 2u, 3u, 4u));

}  // namespace
}  // namespace optfarm::server
