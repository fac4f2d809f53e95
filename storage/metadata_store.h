// MetadataStore: everything about jobs, devices and results that is not bytes.
// Start here for the metadata half of storage/; blob_store.h is the other half.
//
// It keeps records and knows no policy: what may follow what is decided by
// server/. Two things it does guarantee: a WriteBatch is taken whole or not at
// all and is durable when Commit returns OK, and a task is only overwritten
// from the state and attempt that the writer believed it to be in.

#ifndef OPTFARM_STORAGE_METADATA_STORE_H_
#define OPTFARM_STORAGE_METADATA_STORE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "optfarm/v1/recipes.pb.h"
#include "optfarm/v1/results.pb.h"
#include "storage/records.h"

namespace optfarm::storage {

// A task's new contents, and what it must be in the store for them to apply.
struct TaskUpdate {
  TaskRecord task;
  v1::TaskState expected_state = v1::BLOCKED;
  int expected_attempt = 0;
};

// A job that is not in the store yet.
struct NewJob {
  JobRecord job;
  std::vector<TaskRecord> tasks;
  // SHA-256 of every blob the job needs to run.
  std::vector<std::string> blobs;
};

struct WriteBatch {
  // Jobs to insert; all else in the batch may refer to them.
  std::vector<NewJob> new_jobs;
  // State, times, failure and gates are written; the spec is not.
  std::vector<JobRecord> jobs;
  std::vector<TaskUpdate> tasks;
  // Inserted, or replaced when the attempt is there.
  std::vector<AttemptRecord> attempts;
  // Appended in this order.
  std::vector<EventRecord> events;
  std::vector<ReportRecord> reports;
  std::vector<MeasurementRecord> measurements;
  std::vector<ActionRecord> actions;
  // Inserted or replaced; first_seen of a known one is kept.
  std::vector<DeviceRecord> devices;
  // Appended; the oldest of a device go when it has more than
  // kDeviceStatesKept.
  std::vector<DeviceStateRecord> device_states;
  std::vector<ParticipantRecord> participants;
  std::vector<v1::Recipe> recipes;
  // Blobs that these (job_id, sha256) now need too.
  std::vector<std::pair<std::string, std::string>> job_blobs;
  // Blobs that these (project, blob) have brought themselves, and those that
  // their jobs have made: they count for the project.
  std::vector<std::pair<std::string, BlobId>> project_blobs;
  std::vector<std::pair<std::string, BlobId>> made_blobs;
  // Names of devices that are forgotten, with the states that they were in.
  std::vector<std::string> deleted_devices;

  bool empty() const;
};

// A model named by SHA-256, the beginning of one, or a file name.
struct ModelFilter {
  // A beginning of a SHA-256 in lower-case hex; all 64 digits or fewer.
  std::string sha256_prefix;
  // Either may match; empty ones never do.
  std::string file_name;
};

// All that are set must hold.
struct JobFilter {
  std::optional<std::string> project;
  std::optional<v1::JobState> state;
  std::optional<std::string> recipe_name;
  std::optional<std::string> name;
  std::optional<std::string> device;
  std::optional<ModelFilter> model;
  // What the job's id begins with.
  std::optional<std::string> job_id_prefix;
};

// at_least <= value < below.
struct MetricFilter {
  v1::Metric metric = v1::MEDIAN_US;
  double at_least = -std::numeric_limits<double>::infinity();
  double below = std::numeric_limits<double>::infinity();
};

// The number that a filter or a rule by this metric looks at; the median unless
// it is known.
double ValueOf(const PointNumbers& point, v1::Metric metric);

struct MeasurementFilter {
  // 0: any.
  int64_t result_id = 0;
  std::optional<std::string> project;
  std::optional<std::string> job_id;
  std::optional<std::string> recipe_name;
  std::optional<std::string> device;
  std::optional<std::string> variant;
  std::optional<int> threads;
  // Matches the source model or the measured graph.
  std::optional<ModelFilter> model;
  std::optional<std::string> tag;
  std::vector<MetricFilter> metrics;
  absl::Time from_time = absl::InfinitePast();
  absl::Time until_time = absl::InfiniteFuture();
  // Include samples and profiles.
  bool full = false;
};

// Newest first. `before` is the number of the last row of the page before;
// 0 for the first page.
struct PageRequest {
  int64_t before = 0;
  int limit = 50;
};

// How much of which series is read.
struct SeriesRequest {
  // The series whose newest points are newest come first.
  size_t max_series = 20;
  // The newest of each.
  int max_points = 100;
  // Fill in everything of a point, not only the numbers of its measurement.
  bool details = true;
  // Called with the points of a series so far, newest first, after each of the
  // first eight and ever more rarely then; true ends the series before it has
  // max_points. Called with locks held: it must not call back.
  std::function<bool(absl::Span<const PointNumbers>)> enough = nullptr;
  // Takes each series, points newest first, and nothing is listed. Called with
  // locks held: it must not call back.
  std::function<void(const SeriesKey&, absl::Span<const PointNumbers>)> take =
      nullptr;
};

struct SeriesList {
  std::vector<SeriesRecord> series;
  // There are more like that.
  bool more = false;
};

// What may go. Times that are InfinitePast keep everything of their kind. What
// a live job has made or needs stays, whatever the times say.
struct RetentionPolicy {
  // Samples and profiles of measurements older than this.
  absl::Time samples_before = absl::InfinitePast();
  // What the tasks of jobs that ended before this printed.
  absl::Time logs_before = absl::InfinitePast();
  // Jobs that ended before this, with all that was measured in them.
  absl::Time jobs_before = absl::InfinitePast();
  // Most rows that one call deletes; writers get their turn between calls.
  int max_rows = 1000;
};

struct RetentionCounts {
  int64_t samples = 0;
  int64_t logs = 0;
  int64_t jobs = 0;
  // The call stopped at its bound.
  bool more = false;
};

// Largest first. The blob that the page before ended with; empty for the first
// page.
struct BlobPageRequest {
  BlobId after;
  int limit = 100;
};

// What became of a blob that was to be removed from a project.
struct BlobRemoval {
  enum class Outcome { kRemoved, kNotThere, kNeeded };
  Outcome outcome = Outcome::kNotThere;
  // UNITS: bytes that no longer count for the project.
  int64_t given_back_bytes = 0;
  // kNeeded: a live job that needs it.
  std::string job_id;
  // kRemoved: nobody has it any more.
  bool is_orphan = false;
};

// A blob that was removed from some project.
struct RemovedBlob {
  std::string sha256;
  // A project has it, or a job refers to it.
  bool has_owner = false;
};

// What a project has used of what it may.
struct ProjectUsage {
  // UNITS: bytes of the files that it brought and that its jobs made.
  int64_t bytes = 0;
  // Jobs made since the time asked about, and when the oldest of them was.
  int jobs = 0;
  absl::Time oldest_job = absl::InfinitePast();
};

struct RequestMatch {
  std::string job_id;
  std::string spec_digest;
};

// What GetJob says of a job that there is not, or not for whoever asks.
absl::Status NoSuchJob(const std::string& job_id);

// THREADS: all methods are safe.
// ERRORS of all methods: ResourceExhausted when the disk is full (nothing was
// written), Unavailable when the database cannot be read or written now,
// DataLoss when it is damaged.
class MetadataStore {
 public:
  virtual ~MetadataStore() = default;

  // ERRORS: Aborted when a task is not in the expected state and attempt;
  // AlreadyExists for a second job with one id or client request id. Then
  // nothing was written.
  virtual absl::Status Commit(const WriteBatch& batch) = 0;

  virtual absl::StatusOr<std::optional<RequestMatch>> FindClientRequest(
      const std::string& client_request_id) = 0;

  // ERRORS: NotFound.
  virtual absl::StatusOr<StoredJob> GetJob(const std::string& job_id) = 0;
  virtual absl::StatusOr<TaskRecord> GetTask(const std::string& task_id) = 0;

  // Jobs come without calibration files; `number` pages.
  virtual absl::StatusOr<std::vector<StoredJob>> ListJobs(
      const JobFilter& filter, const PageRequest& page) = 0;

  // Every job that is QUEUED or RUNNING, oldest first.
  virtual absl::StatusOr<std::vector<StoredJob>> LoadLiveJobs() = 0;

  // Up to `limit` events after a sequence number, in order.
  virtual absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(
      const std::string& job_id, int64_t after_sequence, int limit,
      bool with_logs) = 0;

  // ERRORS: NotFound when the job has none.
  virtual absl::StatusOr<v1::Report> GetReport(const std::string& job_id) = 0;

  virtual absl::StatusOr<std::vector<MeasurementRecord>> QueryMeasurements(
      const MeasurementFilter& filter, const PageRequest& page) = 0;

  // Those of the ids that are there, in the same order, without samples.
  virtual absl::StatusOr<std::vector<MeasurementRecord>> GetMeasurements(
      absl::Span<const int64_t> result_ids) = 0;

  // Measurements like `filter`, in the series they belong to; `full` is not
  // looked at. Series without such a measurement are left out.
  virtual absl::StatusOr<SeriesList> ListSeries(
      const MeasurementFilter& filter, const SeriesRequest& request) = 0;

  // Fills in the details of points that ListSeries left without.
  virtual absl::Status AddDetails(absl::Span<PointRecord* const> points) = 0;

  // Deletes what the policy lets go, a bounded part of it a call.
  virtual absl::StatusOr<RetentionCounts> Prune(
      const RetentionPolicy& policy) = 0;

  // Copies everything, as it is at one moment, to a new file while others go on
  // reading and writing. The copy opens as a store.
  // ERRORS: AlreadyExists when there is a file; on an error none is left.
  virtual absl::Status Backup(const std::string& path) = 0;

  // The job that did this work, if any.
  virtual absl::StatusOr<std::optional<std::string>> FindAction(
      const std::string& action_digest, const std::string& tool_version) = 0;

  // All devices, by name.
  virtual absl::StatusOr<std::vector<DeviceRecord>> ListDevices() = 0;

  // The states of one device, newest first; `number` pages.
  virtual absl::StatusOr<std::vector<DeviceStateRecord>> ListDeviceStates(
      const std::string& device, const PageRequest& page) = 0;
  // The newest state of each device.
  virtual absl::StatusOr<std::vector<DeviceStateRecord>>
  LatestDeviceStates() = 0;

  // Up to `limit` names of projects that have jobs or files, by name, that come
  // after `after`.
  virtual absl::StatusOr<std::vector<std::string>> ListProjects(
      const std::string& after, int limit) = 0;

  // All recipes that workers offer, by name.
  virtual absl::StatusOr<std::vector<v1::Recipe>> ListRecipes() = 0;

  // The project has brought the blob, or one of its jobs needs or made it.
  virtual absl::StatusOr<bool> ProjectHasBlob(const std::string& project,
                                              const std::string& sha256) = 0;

  // One of the jobs needs the blob, or has made it; the first are asked first.
  virtual absl::StatusOr<bool> AnyJobHasBlob(
      absl::Span<const std::string> job_ids, const std::string& sha256) = 0;

  virtual absl::StatusOr<ProjectUsage> GetProjectUsage(
      const std::string& project, absl::Time jobs_since) = 0;

  // Blobs that count for the project.
  virtual absl::StatusOr<std::vector<ProjectBlobRecord>> ListProjectBlobs(
      const std::string& project, const BlobPageRequest& page) = 0;

  // Removes a blob from a project unless a live job of the project needs it:
  // it no longer counts, and none of its jobs refers to it.
  virtual absl::StatusOr<BlobRemoval> RemoveProjectBlob(
      const std::string& project, const std::string& sha256) = 0;

  // Blobs whose bytes are gone: they count for no project any more.
  virtual absl::Status GiveBackBlobs(absl::Span<const std::string> sha256) = 0;

  // Up to `limit` blobs that were removed from a project, by RemoveProjectBlob
  // or with its jobs by Prune, and not forgotten since, by SHA-256, that come
  // after `after`.
  virtual absl::StatusOr<std::vector<RemovedBlob>> ListRemovedBlobs(
      const std::string& after, int limit) = 0;
  // Forgets that they were removed.
  virtual absl::Status ForgetRemovedBlobs(
      absl::Span<const std::string> sha256) = 0;

  // SHA-256 of every blob that a live job needs or has made.
  virtual absl::StatusOr<absl::flat_hash_set<std::string>> LiveBlobs() = 0;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_METADATA_STORE_H_
