// A metadata store that tells what it is asked to write, and whether it did.

#ifndef OPTFARM_TESTS_SIMULATION_WATCHED_STORE_H_
#define OPTFARM_TESTS_SIMULATION_WATCHED_STORE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/metadata_store.h"

namespace optfarm::simulation {

// THREADS: one thread at a time.
class WatchedStore final : public storage::MetadataStore {
 public:
  using Watch =
      std::function<void(const storage::WriteBatch&, const absl::Status&)>;

  WatchedStore(std::unique_ptr<storage::MetadataStore> store, Watch watch)
      : store_(std::move(store)), watch_(std::move(watch)) {}

  absl::Status Commit(const storage::WriteBatch& batch) override {
    const absl::Status status = store_->Commit(batch);
    watch_(batch, status);
    return status;
  }
  absl::StatusOr<std::optional<storage::RequestMatch>> FindClientRequest(
      const std::string& id) override {
    return store_->FindClientRequest(id);
  }
  absl::StatusOr<storage::StoredJob> GetJob(const std::string& id) override {
    return store_->GetJob(id);
  }
  absl::StatusOr<storage::TaskRecord> GetTask(const std::string& id) override {
    return store_->GetTask(id);
  }
  absl::StatusOr<std::vector<storage::StoredJob>> ListJobs(
      const storage::JobFilter& filter,
      const storage::PageRequest& page) override {
    return store_->ListJobs(filter, page);
  }
  absl::StatusOr<std::vector<storage::StoredJob>> LoadLiveJobs() override {
    return store_->LoadLiveJobs();
  }
  absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(const std::string& id,
                                                       int64_t after, int limit,
                                                       bool logs) override {
    return store_->ReadEvents(id, after, limit, logs);
  }
  absl::StatusOr<v1::Report> GetReport(const std::string& id) override {
    return store_->GetReport(id);
  }
  absl::StatusOr<std::vector<storage::MeasurementRecord>> QueryMeasurements(
      const storage::MeasurementFilter& filter,
      const storage::PageRequest& page) override {
    return store_->QueryMeasurements(filter, page);
  }
  absl::StatusOr<std::vector<storage::MeasurementRecord>> GetMeasurements(
      absl::Span<const int64_t> result_ids) override {
    return store_->GetMeasurements(result_ids);
  }
  absl::StatusOr<storage::SeriesList> ListSeries(
      const storage::MeasurementFilter& filter,
      const storage::SeriesRequest& request) override {
    return store_->ListSeries(filter, request);
  }
  absl::Status AddDetails(
      absl::Span<storage::PointRecord* const> points) override {
    return store_->AddDetails(points);
  }
  absl::StatusOr<storage::RetentionCounts> Prune(
      const storage::RetentionPolicy& policy) override {
    return store_->Prune(policy);
  }
  absl::Status Backup(const std::string& path) override {
    return store_->Backup(path);
  }
  absl::StatusOr<std::optional<std::string>> FindAction(
      const std::string& digest, const std::string& version) override {
    return store_->FindAction(digest, version);
  }
  absl::StatusOr<std::vector<storage::DeviceRecord>> ListDevices() override {
    return store_->ListDevices();
  }
  absl::StatusOr<std::vector<storage::DeviceStateRecord>> ListDeviceStates(
      const std::string& device, const storage::PageRequest& page) override {
    return store_->ListDeviceStates(device, page);
  }
  absl::StatusOr<std::vector<storage::DeviceStateRecord>> LatestDeviceStates()
      override {
    return store_->LatestDeviceStates();
  }
  absl::StatusOr<std::vector<std::string>> ListProjects(
      const std::string& after, int limit) override {
    return store_->ListProjects(after, limit);
  }
  absl::StatusOr<std::vector<v1::Recipe>> ListRecipes() override {
    return store_->ListRecipes();
  }
  absl::StatusOr<bool> ProjectHasBlob(const std::string& project,
                                      const std::string& sha256) override {
    return store_->ProjectHasBlob(project, sha256);
  }
  absl::StatusOr<bool> AnyJobHasBlob(absl::Span<const std::string> job_ids,
                                     const std::string& sha256) override {
    return store_->AnyJobHasBlob(job_ids, sha256);
  }
  absl::StatusOr<storage::ProjectUsage> GetProjectUsage(
      const std::string& project, absl::Time since) override {
    return store_->GetProjectUsage(project, since);
  }
  absl::StatusOr<std::vector<storage::ProjectBlobRecord>> ListProjectBlobs(
      const std::string& project,
      const storage::BlobPageRequest& page) override {
    return store_->ListProjectBlobs(project, page);
  }
  absl::StatusOr<storage::BlobRemoval> RemoveProjectBlob(
      const std::string& project, const std::string& sha256) override {
    return store_->RemoveProjectBlob(project, sha256);
  }
  absl::Status GiveBackBlobs(absl::Span<const std::string> sha256) override {
    return store_->GiveBackBlobs(sha256);
  }
  absl::StatusOr<std::vector<storage::RemovedBlob>> ListRemovedBlobs(
      const std::string& after, int limit) override {
    return store_->ListRemovedBlobs(after, limit);
  }
  absl::Status ForgetRemovedBlobs(
      absl::Span<const std::string> sha256) override {
    return store_->ForgetRemovedBlobs(sha256);
  }
  absl::StatusOr<absl::flat_hash_set<std::string>> LiveBlobs() override {
    return store_->LiveBlobs();
  }

 private:
  const std::unique_ptr<storage::MetadataStore> store_;
  const Watch watch_;
};

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_WATCHED_STORE_H_
