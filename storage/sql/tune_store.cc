#include "storage/tune_store.h"

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "storage/sql/run.h"
#include "storage/sql/select_columns.h"
#include "storage/sql/stores.h"

namespace optfarm::storage {
namespace {

#define OPTFARM_SELECT_TUNE                                               \
  "SELECT tune_number, client_request_id, spec_digest, token_id, scopes," \
  " finish_round, measured_rounds, known_steps, tune, spec FROM tunes"
constexpr char kById[] = OPTFARM_SELECT_TUNE " WHERE tune_id = ?1";
constexpr char kByRequest[] =
    OPTFARM_SELECT_TUNE " WHERE client_request_id = ?1";
constexpr char kRunning[] =
    OPTFARM_SELECT_TUNE " WHERE end_time IS NULL ORDER BY tune_number";
#undef OPTFARM_SELECT_TUNE

#define OPTFARM_SELECT_LISTED                                             \
  "SELECT tune_number, client_request_id, spec_digest, token_id, scopes," \
  " finish_round, measured_rounds, NULL AS known_steps, tune,"            \
  " NULL AS spec FROM tunes"                                              \
  " WHERE (?1 = 0 OR tune_number < ?1)"
#define OPTFARM_NEWEST_FIRST " ORDER BY tune_number DESC LIMIT ?2"
constexpr char kAll[] = OPTFARM_SELECT_LISTED OPTFARM_NEWEST_FIRST;
constexpr char kOfProject[] =
    OPTFARM_SELECT_LISTED " AND project = ?3" OPTFARM_NEWEST_FIRST;
#undef OPTFARM_NEWEST_FIRST
#undef OPTFARM_SELECT_LISTED
constexpr char kSteps[] =
    "SELECT key, op, multiply_adds, input_bytes, weight_bytes, output_bytes,"
    " median_us FROM step_times WHERE machine = ?1"
    " ORDER BY update_time DESC, key LIMIT ?2";
// Measured more often than this, a step still comes closer to a new time.
#define OPTFARM_MOST_TIMES "8"

absl::StatusOr<TuneRecord> ReadTune(const SqlStatement& row) {
  constexpr SelectColumns kTune(kById);
  TuneRecord record;
  record.number = row.Int(kTune["tune_number"]);
  record.client_request_id = row.Text(kTune["client_request_id"]);
  record.spec_digest = row.Text(kTune["spec_digest"]);
  record.token_id = row.Text(kTune["token_id"]);
  record.scopes = static_cast<unsigned>(row.Int(kTune["scopes"]));
  record.finish_round = static_cast<int>(row.Int(kTune["finish_round"]));
  record.measured_rounds = static_cast<int>(row.Int(kTune["measured_rounds"]));
  bool is_readable = true;
  if (!row.IsNull(kTune["known_steps"])) {
    is_readable = record.known_steps.emplace().ParseFromString(
        row.Text(kTune["known_steps"]));
  }
  if (!is_readable || !record.tune.ParseFromString(row.Text(kTune["tune"])) ||
      !record.spec.ParseFromString(row.Text(kTune["spec"]))) {
    return absl::DataLossError(
        absl::StrCat("tune number ", record.number, " cannot be read"));
  }
  return record;
}

// One of them at most.
absl::StatusOr<std::optional<TuneRecord>> ReadOne(SqlStatement& query) {
  std::optional<TuneRecord> found;
  while (query.Step()) {
    OPTFARM_ASSIGN_OR_RETURN(found, ReadTune(query));
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return found;
}

absl::StatusOr<std::vector<TuneRecord>> ReadAll(SqlStatement& query) {
  std::vector<TuneRecord> records;
  while (query.Step()) {
    OPTFARM_ASSIGN_OR_RETURN(TuneRecord record, ReadTune(query));
    records.push_back(std::move(record));
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return records;
}

absl::Time EndOf(const v1::Tune& tune) {
  if (!tune.has_end_time()) return absl::InfinitePast();
  return absl::FromUnixSeconds(tune.end_time().seconds()) +
         absl::Nanoseconds(tune.end_time().nanos());
}

class SqlTuneStore final : public TuneStore {
 public:
  explicit SqlTuneStore(std::unique_ptr<SqlDatabase> db) : db_(std::move(db)) {}

  absl::Status Add(TuneRecord& record) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kWrite, [&]() -> absl::Status {
          SqlStatement insert = db.Prepare(
              "INSERT INTO tunes (tune_id, project, client_request_id,"
              " spec_digest, token_id, scopes, finish_round, spec, tune, "
              "end_time)"
              " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10) RETURNING tune_number");
          insert.BindText(1, record.tune.tune_id());
          insert.BindText(2, record.tune.project());
          if (!record.client_request_id.empty()) {
            insert.BindText(3, record.client_request_id);
          } else {
            insert.BindNull(3);
          }
          insert.BindText(4, record.spec_digest);
          insert.BindText(5, record.token_id);
          insert.BindInt(6, record.scopes);
          insert.BindInt(7, record.finish_round);
          const std::string spec = record.spec.SerializeAsString();
          insert.BindBlob(8, spec);
          const std::string tune = record.tune.SerializeAsString();
          insert.BindBlob(9, tune);
          insert.BindTime(10, EndOf(record.tune));
          if (insert.Step()) record.number = insert.Int(0);
          return insert.status();
        });
  }

  absl::Status Update(const TuneRecord& record) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kWrite, [&]() -> absl::Status {
          SqlStatement update = db.Prepare(
              "UPDATE tunes SET tune = ?2, finish_round = ?3, end_time = ?4"
              " WHERE tune_id = ?1");
          update.BindText(1, record.tune.tune_id());
          const std::string tune = record.tune.SerializeAsString();
          update.BindBlob(2, tune);
          update.BindInt(3, record.finish_round);
          update.BindTime(4, EndOf(record.tune));
          return update.Run();
        });
  }

  absl::StatusOr<std::optional<TuneRecord>> FindClientRequest(
      const std::string& client_request_id) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(db, SqlTransaction::Mode::kRead,
                            [&]() -> absl::StatusOr<std::optional<TuneRecord>> {
                              SqlStatement query = db.Prepare(kByRequest);
                              query.BindText(1, client_request_id);
                              return ReadOne(query);
                            });
  }

  absl::StatusOr<TuneRecord> Get(const std::string& tune_id) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kRead, [&]() -> absl::StatusOr<TuneRecord> {
          SqlStatement query = db.Prepare(kById);
          query.BindText(1, tune_id);
          OPTFARM_ASSIGN_OR_RETURN(std::optional<TuneRecord> found,
                                   ReadOne(query));
          if (!found.has_value()) return NoSuchTune(tune_id);
          return *std::move(found);
        });
  }

  absl::StatusOr<std::vector<TuneRecord>> List(
      const std::optional<std::string>& project,
      const PageRequest& page) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(db, SqlTransaction::Mode::kRead,
                            [&]() -> absl::StatusOr<std::vector<TuneRecord>> {
                              SqlStatement query =
                                  db.Prepare(project ? kOfProject : kAll);
                              query.BindInt(1, page.before);
                              query.BindInt(2, page.limit);
                              if (project) query.BindText(3, *project);
                              return ReadAll(query);
                            });
  }

  absl::StatusOr<std::vector<TuneRecord>> ListRunning() override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(db, SqlTransaction::Mode::kRead,
                            [&]() -> absl::StatusOr<std::vector<TuneRecord>> {
                              SqlStatement query = db.Prepare(kRunning);
                              return ReadAll(query);
                            });
  }

  absl::Status Forget(absl::Time before) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kWrite, [&]() -> absl::Status {
          SqlStatement remove =
              db.Prepare("DELETE FROM tunes WHERE end_time < ?1");
          remove.BindTime(1, before);
          OPTFARM_RETURN_IF_ERROR(remove.Run());
          SqlStatement steps =
              db.Prepare("DELETE FROM step_times WHERE update_time < ?1");
          steps.BindTime(1, before);
          return steps.Run();
        });
  }

  absl::Status KeepKnownSteps(const std::string& tune_id,
                              const v1::BenchmarkResult& known) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kWrite, [&]() -> absl::Status {
          SqlStatement update = db.Prepare(
              "UPDATE tunes SET known_steps = ?2"
              " WHERE tune_id = ?1 AND known_steps IS NULL");
          update.BindText(1, tune_id);
          const std::string bytes = known.SerializeAsString();
          update.BindBlob(2, bytes);
          return update.Run();
        });
  }

  absl::Status AddSteps(const std::string& tune_id, int round,
                        absl::Span<const MachineSteps> measured,
                        absl::Time now) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kWrite, [&]() -> absl::Status {
          SqlStatement note = db.Prepare(
              "UPDATE tunes SET measured_rounds = ?2 WHERE tune_id = ?1"
              " AND measured_rounds < ?2 RETURNING tune_number");
          note.BindText(1, tune_id);
          note.BindInt(2, round);
          const bool is_new = note.Step();
          OPTFARM_RETURN_IF_ERROR(note.status());
          if (!is_new) return absl::OkStatus();
          for (const MachineSteps& machine : measured) {
            for (const v1::StepTime& step : machine.steps) {
              OPTFARM_RETURN_IF_ERROR(AddStep(db, machine.machine, step, now));
            }
          }
          return absl::OkStatus();
        });
  }

  absl::StatusOr<std::vector<v1::StepTime>> StepsOn(const std::string& machine,
                                                    int limit) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kRead,
        [&]() -> absl::StatusOr<std::vector<v1::StepTime>> {
          constexpr SelectColumns kStep(kSteps);
          SqlStatement query = db.Prepare(kSteps);
          query.BindText(1, machine);
          query.BindInt(2, limit);
          std::vector<v1::StepTime> steps;
          while (query.Step()) {
            v1::StepTime& step = steps.emplace_back();
            step.set_median_us(query.Double(kStep["median_us"]));
            v1::StepWork& work = *step.mutable_work();
            work.set_key(query.Text(kStep["key"]));
            work.set_op(query.Text(kStep["op"]));
            work.set_multiply_adds(query.Double(kStep["multiply_adds"]));
            work.set_input_bytes(query.Int(kStep["input_bytes"]));
            work.set_weight_bytes(query.Int(kStep["weight_bytes"]));
            work.set_output_bytes(query.Int(kStep["output_bytes"]));
          }
          OPTFARM_RETURN_IF_ERROR(query.status());
          return steps;
        });
  }

 private:
  // One that is there already comes closer to its new time.
  static absl::Status AddStep(SqlDatabase& db, const std::string& machine,
                              const v1::StepTime& step, absl::Time now) {
    SqlStatement insert = db.Prepare(
        "INSERT INTO step_times (machine, key, op, multiply_adds, input_bytes,"
        " weight_bytes, output_bytes, median_us, times, update_time)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,1,?9)"
        " ON CONFLICT (machine, key) DO UPDATE SET"
        " median_us = step_times.median_us"
        "   + (excluded.median_us - step_times.median_us)"
        "   / (step_times.times + 1),"
        " times = CASE WHEN step_times.times < " OPTFARM_MOST_TIMES
        "   THEN step_times.times + 1 ELSE step_times.times END,"
        " update_time = excluded.update_time");
    const v1::StepWork& work = step.work();
    insert.BindText(1, machine);
    insert.BindText(2, work.key());
    insert.BindText(3, work.op());
    insert.BindDouble(4, work.multiply_adds());
    insert.BindInt(5, work.input_bytes());
    insert.BindInt(6, work.weight_bytes());
    insert.BindInt(7, work.output_bytes());
    insert.BindDouble(8, step.median_us());
    insert.BindTime(9, now);
    return insert.Run();
  }

  absl::Mutex mutex_;
  const std::unique_ptr<SqlDatabase> db_ ABSL_PT_GUARDED_BY(mutex_);
};

#undef OPTFARM_MOST_TIMES

}  // namespace

std::unique_ptr<TuneStore> MakeSqlTuneStore(std::unique_ptr<SqlDatabase> db) {
  return std::make_unique<SqlTuneStore>(std::move(db));
}

absl::Status NoSuchTune(const std::string& tune_id) {
  return absl::NotFoundError(absl::StrCat("there is no tune '", tune_id,
                                          "' (optctl tunes lists them)"));
}

}  // namespace optfarm::storage
