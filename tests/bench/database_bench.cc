// Databases side by side: how long what a server asks of its database takes,
// with one engine and with another, in turns. Not a test.
//
//   nice database_bench sqlite:/big/disk/a.db
//       'postgresql://optfarm@/optfarm?host=/run/postgresql'
//
// Each database must be new; it is left as it is in the end.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "storage/postgres/stores.h"
#include "storage/sqlite/metadata_store.h"

namespace optfarm {
namespace {

using storage::MetadataStore;
using storage::WriteBatch;

constexpr char kProject[] = "bench";
const absl::Time kStart = absl::FromUnixSeconds(1'750'000'000);

struct Database {
  std::string address;
  // Keeps the lease of PostgreSQL with it.
  std::unique_ptr<MetadataStore> store;
  int jobs = 0;
};

absl::StatusOr<std::unique_ptr<MetadataStore>> Open(const std::string& address,
                                                    int64_t results_bytes) {
  if (storage::IsPostgresUri(address)) {
    storage::PostgresOptions options;
    options.uri = address;
    options.holder = "database_bench";
    options.results_bytes = results_bytes;
    auto stores = storage::OpenPostgresStores(std::move(options), absl::Now());
    if (!stores.ok()) return stores.status();
    return std::move(stores->store);
  }
  return storage::OpenSqliteMetadataStore(
      std::string(absl::StripPrefix(address, "sqlite:")), absl::Now(),
      results_bytes);
}

void Check(const absl::Status& status) {
  if (status.ok()) return;
  absl::FPrintF(stderr, "%s\n", status.ToString());
  std::exit(1);
}

// A job as a pipeline submits it: to optimize, and to measure on two devices.
storage::NewJob NewJob(int number) {
  storage::NewJob job;
  job.job.job_id = absl::StrCat("job", number);
  job.job.client_request_id = absl::StrCat("request", number);
  job.job.spec_digest = Sha256Hex(job.job.job_id);
  job.job.state = v1::SUCCEEDED;
  job.job.project = kProject;
  job.job.create_time = kStart + absl::Seconds(number);
  job.job.end_time = job.job.create_time;
  job.job.spec.mutable_recipe()->set_name("int8");
  job.job.spec.mutable_model()->set_name(
      absl::StrCat("model", number % 20, ".pb"));
  job.job.spec.add_tags(absl::StrCat("commit=", number / 50));
  job.job.spec.add_tags("nightly");
  for (int i = 0; i < 3; ++i) {
    storage::TaskRecord task;
    task.job_id = job.job.job_id;
    task.task_id = absl::StrCat(task.job_id, "/", i);
    task.ordinal = i;
    task.kind = i == 0 ? v1::OPTIMIZE : v1::BENCHMARK;
    task.create_time = job.job.create_time;
    job.tasks.push_back(std::move(task));
  }
  job.blobs = {Sha256Hex(absl::StrCat("model", number % 20))};
  return job;
}

storage::MeasurementRecord Result(int job, int i) {
  storage::MeasurementRecord record;
  record.job_id = absl::StrCat("job", job);
  record.task_id = absl::StrCat("job", job, "/1");
  record.project = kProject;
  record.create_time = kStart + absl::Seconds(job);
  record.recipe_name = "int8";
  record.source_model.set_name(absl::StrCat("model", job % 20, ".pb"));
  record.source_model.mutable_digest()->set_sha256(
      Sha256Hex(absl::StrCat("model", job % 20)));
  v1::Measurement& m = record.measurement;
  m.set_device(absl::StrCat("device", job / 20 % 50));
  m.set_variant(i < 2 ? "float" : "int8");
  m.set_threads(i % 2 == 0 ? 1 : 4);
  m.mutable_model()->set_sha256(
      Sha256Hex(absl::StrCat("measured", job % 20, i < 2)));
  for (int run = 0; run < 100; ++run) {
    m.add_samples_us(static_cast<float>(1000 + (run * 7919 + job) % 100));
  }
  m.set_median_us(1000 + job % 17);
  m.set_p90_us(1100 + job % 17);
  m.set_runs(100);
  m.set_peak_memory_bytes(100'000'000);
  m.set_file_size_bytes(4'000'000);
  for (v1::Environment* e : {m.mutable_before(), m.mutable_after()}) {
    e->set_cpu_model("Cortex-A76");
    e->set_governor("performance");
    e->set_os("Debian GNU/Linux 12 (bookworm)");
    e->set_kernel("Linux 6.1.0 aarch64");
    e->set_build_version("0.1.0");
  }
  return record;
}

// Writes `count` records in commits of `together`; returns how many a second.
double WriteRate(Database& database, int count, int together,
                 const std::function<void(int, WriteBatch&)>& add) {
  const absl::Time begin = absl::Now();
  for (int done = 0; done < count;) {
    WriteBatch batch;
    for (int i = 0; i < together; ++i) add(done++, batch);
    Check(database.store->Commit(batch));
  }
  return count / absl::ToDoubleSeconds(absl::Now() - begin);
}

// The median of `repeats` in milliseconds.
double AskTime(int repeats, const std::function<void()>& ask) {
  std::vector<double> milliseconds;
  for (int i = 0; i < repeats; ++i) {
    const absl::Time begin = absl::Now();
    ask();
    milliseconds.push_back(absl::ToDoubleMilliseconds(absl::Now() - begin));
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  return milliseconds[milliseconds.size() / 2];
}

class Bench {
 public:
  Bench(std::vector<Database> databases, int size, int rounds)
      : databases_(std::move(databases)), size_(size), rounds_(rounds) {}

  void Run() {
    Writes();
    Questions();
  }

 private:
  // One row of the table: the median of all rounds, databases in turns.
  void Row(const char* what, const std::function<double(Database&)>& measure) {
    std::vector<std::vector<double>> found(databases_.size());
    for (int round = 0; round < rounds_; ++round) {
      for (size_t i = 0; i < databases_.size(); ++i) {
        found[i].push_back(measure(databases_[i]));
      }
    }
    absl::PrintF("%-48s", what);
    for (std::vector<double>& values : found) {
      std::sort(values.begin(), values.end());
      absl::PrintF(" %10.2f (%.2f to %.2f)", values[values.size() / 2],
                   values.front(), values.back());
    }
    absl::PrintF("\n");
    std::fflush(stdout);
  }

  void Writes() {
    Row("jobs, one a commit [1/s]", [this](Database& database) {
      const int first = database.jobs;
      database.jobs += size_;
      return WriteRate(database, size_, 1, [&](int i, WriteBatch& batch) {
        batch.new_jobs.push_back(NewJob(first + i));
      });
    });
    const auto results = [this](int together) {
      return [this, together](Database& database) {
        return WriteRate(database, size_, together,
                         [&](int i, WriteBatch& batch) {
                           batch.measurements.push_back(
                               Result(i / 4 % database.jobs, i % 4));
                         });
      };
    };
    Row("results, one a commit [1/s]", results(1));
    Row("results, four a commit [1/s]", results(4));
    Row("results, 64 a commit [1/s]", results(64));
    Row("devices, one a commit [1/s]", [this](Database& database) {
      return WriteRate(database, size_, 1, [](int i, WriteBatch& batch) {
        storage::DeviceRecord& device = batch.devices.emplace_back();
        device.info.set_name(absl::StrCat("device", i % 50));
        device.last_seen = device.first_seen = kStart;
      });
    });
  }

  void Questions() {
    const auto page = [](bool full) {
      return [full](Database& database) {
        return AskTime(9, [&] {
          storage::MeasurementFilter filter;
          filter.full = full;
          Check(database.store->QueryMeasurements(filter, {0, 50}).status());
        });
      };
    };
    Row("page of 50 jobs [ms]", [](Database& database) {
      return AskTime(9, [&] {
        Check(database.store->ListJobs({}, {0, 50}).status());
      });
    });
    Row("page of 50 results [ms]", page(false));
    Row("page of 50 results with samples [ms]", page(true));
    Row("one job [ms]", [](Database& database) {
      return AskTime(9,
                     [&] { Check(database.store->GetJob("job7").status()); });
    });
    Row("history of a model, 20 series [ms]", [](Database& database) {
      return AskTime(9, [&] {
        storage::MeasurementFilter filter;
        filter.model = storage::ModelFilter{"", "model3.pb"};
        Check(database.store->ListSeries(filter, {}).status());
      });
    });
  }

  std::vector<Database> databases_;
  const int size_;
  const int rounds_;
};

}  // namespace
}  // namespace optfarm

int main(int argc, char** argv) {
  CLI::App app("Databases side by side");
  std::vector<std::string> addresses;
  int size = 1024;
  int rounds = 5;
  int memory_mb = 64;
  app.add_option("databases", addresses, "sqlite:PATH or postgresql://...")
      ->required();
  app.add_option("--size", size, "Rows that are written in each round")
      ->check(CLI::Range(64, 1'000'000));
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 100));
  app.add_option("--results_memory_mb", memory_mb);
  CLI11_PARSE(app, argc, argv);
  std::vector<optfarm::Database> databases;
  for (const std::string& address : addresses) {
    auto store = optfarm::Open(address, int64_t{memory_mb} << 20);
    optfarm::Check(store.status());
    databases.push_back({address, *std::move(store)});
  }
  optfarm::Bench(std::move(databases), size / 64 * 64, rounds).Run();
  return 0;
}
