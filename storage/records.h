// What the metadata store keeps, as plain values. Times are absl::Time;
// absl::InfinitePast() means "not set". The meaning of a field that has the
// name of an optfarm.v1 field is the one stated there.

#ifndef OPTFARM_STORAGE_RECORDS_H_
#define OPTFARM_STORAGE_RECORDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "optfarm/v1/devices.pb.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/measurement.pb.h"
#include "optfarm/v1/report.pb.h"
#include "storage/blob_id.h"

namespace optfarm::storage {

// Jobs and files of those who were given no other project.
inline constexpr char kDefaultProject[] = "default";

struct JobRecord {
  // Grows with time of arrival; given by the store. 0 before that.
  int64_t number = 0;
  std::string job_id;
  // Empty: none.
  std::string client_request_id;
  std::string project = kDefaultProject;
  // SHA-256 of the spec as the client sent it; tells a retry from a clash.
  std::string spec_digest;
  // With the recipe inline and defaults filled in.
  v1::JobSpec spec;
  v1::JobState state = v1::QUEUED;
  absl::Time create_time = absl::InfinitePast();
  absl::Time start_time = absl::InfinitePast();
  absl::Time end_time = absl::InfinitePast();
  std::optional<v1::Failure> failure;
  std::vector<v1::GateResult> gates;
  bool from_cache = false;
  std::string cached_from_job_id;
};

struct TaskRecord {
  std::string task_id;
  std::string job_id;
  // Place within the job; 0 is the optimize task.
  int ordinal = 0;
  v1::TaskKind kind = v1::OPTIMIZE;
  v1::TaskState state = v1::BLOCKED;

  // Number of the current or last lease.
  int attempt = 0;
  // The last attempt whose completion was taken; 0: none. Tells a repeated
  // completion from a stale one.
  int accepted_attempt = 0;
  int failed_attempts = 0;
  int max_attempts = 1;

  // Benchmark tasks only.
  std::string device;
  // Name, and id of the process, that holds or last held the lease.
  std::string holder;
  std::string participant_id;

  absl::Time lease_deadline = absl::InfinitePast();
  absl::Time not_before = absl::InfinitePast();
  // When it last became READY.
  absl::Time ready_time = absl::InfinitePast();
  absl::Time attempt_start_time = absl::InfinitePast();
  absl::Time create_time = absl::InfinitePast();
  absl::Time start_time = absl::InfinitePast();
  absl::Time end_time = absl::InfinitePast();

  double progress = 0;
  std::string progress_message;
  std::optional<v1::Failure> failure;
  std::vector<v1::Artifact> artifacts;
};

// One lease in the history of a task.
struct AttemptRecord {
  std::string task_id;
  int attempt = 0;
  std::string holder;
  std::string participant_id;
  absl::Time start_time = absl::InfinitePast();
  absl::Time end_time = absl::InfinitePast();
  // "running", "done", "failed", "lost", "released", "cancelled".
  std::string outcome;
  std::string message;
};

// `event.sequence` is given by the store.
struct EventRecord {
  std::string job_id;
  v1::JobEvent event;
};

struct ReportRecord {
  std::string job_id;
  v1::Report report;
};

struct MeasurementRecord {
  // Given by the store.
  int64_t result_id = 0;
  std::string job_id;
  std::string task_id;
  absl::Time create_time = absl::InfinitePast();
  std::string recipe_name;
  v1::NamedBlob source_model;
  v1::Measurement measurement;
  // That of its job; ignored when it is written.
  std::string project;
  // Those of its job; ignored when it is written.
  std::vector<std::string> tags;
};

// What may be put in one line over time.
struct SeriesKey {
  // File name of the model that the jobs were given.
  std::string model_name;
  std::string recipe_name;
  std::string device;
  std::string variant;
  int threads = 0;
  std::string project;
};

// What a measurement of a series is judged by.
struct PointNumbers {
  int64_t result_id = 0;
  double median_us = 0;
  double p90_us = 0;
  int64_t peak_memory_bytes = 0;
  int64_t file_size_bytes = 0;
  bool noisy = false;
};

// One measurement of a series.
struct PointRecord : PointNumbers {
  PointRecord() = default;
  explicit PointRecord(const PointNumbers& numbers) : PointNumbers(numbers) {}

  // Set where details are asked for.
  absl::Time create_time = absl::InfinitePast();
  std::string measured_sha256;
  std::string build_version;
  std::string job_id;
};

struct SeriesRecord {
  SeriesKey key;
  // Newest first.
  std::vector<PointRecord> points;
};

// "This work, done by this tool version, was done by that job."
struct ActionRecord {
  std::string action_digest;
  std::string tool_version;
  std::string job_id;
  absl::Time create_time = absl::InfinitePast();
};

struct DeviceRecord {
  v1::DeviceInfo info;
  std::string agent;
  std::string participant_id;
  bool ready = false;
  bool disabled = false;
  // As the agent says; not kept, because it says so with every call.
  bool cooling = false;
  bool unreachable = false;
  // Its agent has called since the server started; not kept either.
  bool heard = false;
  std::string reason;
  v1::DeviceHealth health;
  // What an operator last said; CHANGE_UNSPECIFIED: nothing.
  v1::ChangeDeviceRequest change;
  int failures_in_a_row = 0;
  absl::Time quarantined_until = absl::InfinitePast();
  std::string quarantine_reason;
  absl::Time first_seen = absl::InfinitePast();
  absl::Time last_seen = absl::InfinitePast();
};

// A state that a device came into; see v1::DeviceStateChange.
struct DeviceStateRecord {
  // Grows with time; given by the store.
  int64_t number = 0;
  std::string device;
  v1::Device::State state = v1::Device::STATE_UNSPECIFIED;
  std::string reason;
  absl::Time time = absl::InfinitePast();
};

// States that are kept of each device.
inline constexpr int kDeviceStatesKept = 500;

struct ParticipantRecord {
  std::string participant_id;
  std::string name;
  // Number of SynchronizeRequest.Kind.
  int kind = 0;
  std::string build_version;
  absl::Time first_seen = absl::InfinitePast();
  absl::Time last_seen = absl::InfinitePast();
};

// What a job has to do with a blob.
struct BlobUseRecord {
  enum class Kind { kModel, kData, kArtifact };
  std::string job_id;
  Kind kind = Kind::kData;
  // File name of the model or the artifact.
  std::string name;
  bool live = false;
};

// A blob that counts for a project.
struct ProjectBlobRecord {
  BlobId id;
  // Jobs of the project that need it or made it, and those of them that live.
  int jobs = 0;
  int live_jobs = 0;
  // The newest of them; at most kBlobUses.
  std::vector<BlobUseRecord> uses;
};
inline constexpr int kBlobUses = 3;

// A job with its tasks in order.
struct StoredJob {
  JobRecord job;
  std::vector<TaskRecord> tasks;
  int64_t last_event_sequence = 0;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_RECORDS_H_
