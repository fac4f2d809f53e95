// TuneStore: searches for variants of models, as far as they have come, and the
// latency table that they fill. In a database of its own: their jobs are
// ordinary ones, and a search that is begun again finds them.

#ifndef OPTFARM_STORAGE_TUNE_STORE_H_
#define OPTFARM_STORAGE_TUNE_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "optfarm/v1/steps.pb.h"
#include "optfarm/v1/tunes.pb.h"
#include "optfarm/v1/work.pb.h"
#include "storage/metadata_store.h"

namespace optfarm::storage {

struct TuneRecord {
  // Grows with time; given by the store.
  int64_t number = 0;
  // Empty: none was given.
  std::string client_request_id;
  // SHA-256 of the spec as sent.
  std::string spec_digest;
  // The token that it submits its jobs with; empty: the operator's.
  std::string token_id;
  // Bit n is Access.Scope n.
  unsigned scopes = 0;
  // The round of candidates before which the budget ended; -1: it has not.
  int finish_round = -1;
  // Rounds of candidates whose times are in the latency table.
  int measured_rounds = 0;
  // What the table had before this tune measured, one entry a place: device,
  // threads, steps. nullopt: it has not been asked. List leaves it out.
  std::optional<v1::BenchmarkResult> known_steps;
  // What is asked for, whole.
  v1::TuneSpec spec;
  // What clients see.
  v1::Tune tune;
};

// What the steps of plans took on one kind of machine.
struct MachineSteps {
  // tune::MachineOf; the text is opaque here.
  std::string machine;
  std::vector<v1::StepTime> steps;
};

// THREADS: all methods are safe.
// ERRORS: as MetadataStore.
class TuneStore {
 public:
  virtual ~TuneStore() = default;

  // ENSURES: on OK it is durable, and has its number.
  // ERRORS: AlreadyExists for a second tune with one id or client request id.
  virtual absl::Status Add(TuneRecord& tune) = 0;
  // Writes the tune and its finish round; the rest stays.
  virtual absl::Status Update(const TuneRecord& tune) = 0;

  virtual absl::StatusOr<std::optional<TuneRecord>> FindClientRequest(
      const std::string& client_request_id) = 0;
  // ERRORS: NotFound.
  virtual absl::StatusOr<TuneRecord> Get(const std::string& tune_id) = 0;
  // Of the project, or of all; newest first, without the specs.
  virtual absl::StatusOr<std::vector<TuneRecord>> List(
      const std::optional<std::string>& project, const PageRequest& page) = 0;
  // Those that have not ended, oldest first.
  virtual absl::StatusOr<std::vector<TuneRecord>> ListRunning() = 0;
  // Forgets those that ended before this, and steps that were not measured
  // since.
  virtual absl::Status Forget(absl::Time before) = 0;

  // Keeps what the table had before the tune measured; the first one stays.
  virtual absl::Status KeepKnownSteps(const std::string& tune_id,
                                      const v1::BenchmarkResult& known) = 0;
  // Adds what the round of a tune measured, once, however often it is called: a
  // step that is there already comes closer to its new time. `now` is when.
  virtual absl::Status AddSteps(const std::string& tune_id, int round,
                                absl::Span<const MachineSteps> measured,
                                absl::Time now) = 0;
  // What steps take on a machine, those measured last first, without the names
  // of nodes; at most `limit`.
  virtual absl::StatusOr<std::vector<v1::StepTime>> StepsOn(
      const std::string& machine, int limit) = 0;
};

// What Get says of a tune that there is not, or not for whoever asks.
absl::Status NoSuchTune(const std::string& tune_id);

// Opens or makes the database at `path`.
absl::StatusOr<std::unique_ptr<TuneStore>> OpenSqliteTuneStore(
    const std::string& path, absl::Time now);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_TUNE_STORE_H_
