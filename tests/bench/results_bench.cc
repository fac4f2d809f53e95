// Fills a results store, by default with a million measurements, and prints how
// long taking them in took and how long each kind of question takes then. Not a
// test: nothing depends on how fast it is.
//
//   nice taskset -c 0,1 results_bench --path=/big/disk/results.db
//
// A store that is there is used as it is, so that questions can be asked again.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "server/services/regression_rule.h"
#include "storage/sqlite/analyst.h"
#include "storage/sqlite/metadata_store.h"

namespace optfarm {
namespace {

using storage::MeasurementFilter;
using storage::MeasurementRecord;

struct Options {
  std::string path;
  int measurements = 1'000'000;
  int devices = 50;
  int models = 20;
  // A completion brings so many at once: 2 variants with 2 thread counts each.
  int batch = 4;
  // Completions that one commit keeps, as when several arrive together.
  int together = 1;
  int samples = 100;
  int repeats = 7;
  // Each job has the tag "bench" too.
  bool tag_all = false;
  bool cpu_time = false;
  // UNITS: MB.
  int64_t memory_mb = storage::kResultsBytes >> 20;
  int retention_steps = 0;
};

constexpr double kNoBound = std::numeric_limits<double>::infinity();
const absl::Time kStart = absl::FromUnixSeconds(1'750'000'000);
constexpr absl::Duration kYear = absl::Hours(24 * 365);

// One model's jobs on one device measure float and int8 with 1 and 4 threads.
class Writer {
 public:
  Writer(storage::MetadataStore& store, const Options& options)
      : store_(store), options_(options) {}

  absl::Status WriteAll() {
    for (int done = 0; done < options_.measurements;) {
      storage::WriteBatch batch;
      for (int i = 0; i < options_.together; ++i, done += options_.batch) {
        AddCompletion(done, batch);
      }
      OPTFARM_RETURN_IF_ERROR(store_.Commit(batch));
    }
    return absl::OkStatus();
  }

 private:
  // Every commit of a pipeline makes another model of the same name.
  void AddCompletion(int done, storage::WriteBatch& batch) {
    const int commit = done / (options_.batch * options_.devices);
    const int device = done / options_.batch % options_.devices;
    const int model = commit % options_.models;
    const std::string sha = Sha256Hex(absl::StrCat("model ", commit));
    const std::string job_id = absl::StrCat("job", done);
    storage::NewJob& job = batch.new_jobs.emplace_back();
    job.job.job_id = job_id;
    job.job.project = storage::kDefaultProject;
    job.job.create_time = TimeOf(done);
    job.job.state = v1::SUCCEEDED;
    job.job.end_time = TimeOf(done);
    job.job.spec.add_tags(absl::StrCat("commit=", commit));
    if (commit % 7 == 0) job.job.spec.add_tags("nightly");
    if (options_.tag_all) job.job.spec.add_tags("bench");
    storage::TaskRecord task;
    task.task_id = job_id + "/benchmark";
    task.job_id = job_id;
    task.create_time = TimeOf(done);
    job.tasks.push_back(std::move(task));
    for (int i = 0; i < options_.batch; ++i) {
      MeasurementRecord& record = batch.measurements.emplace_back();
      record.job_id = job_id;
      record.project = storage::kDefaultProject;
      record.task_id = job_id + "/benchmark";
      record.create_time = TimeOf(done);
      record.recipe_name = model % 2 == 0 ? "int8" : "int8-accuracy";
      record.source_model.set_name(absl::StrCat("model", model, ".pb"));
      record.source_model.mutable_digest()->set_sha256(sha);
      Fill(device, i % 4, sha, record);
    }
  }

  absl::Time TimeOf(int done) const {
    return kStart + kYear * (static_cast<double>(done) /
                             static_cast<double>(options_.measurements));
  }

  void Fill(int device, int kind, const std::string& sha,
            MeasurementRecord& record) {
    v1::Measurement& m = record.measurement;
    m.set_device(absl::StrCat("device", device));
    m.set_variant(kind < 2 ? "float" : record.recipe_name);
    m.set_threads(kind % 2 == 0 ? 1 : 4);
    m.mutable_model()->set_sha256(kind < 2 ? sha : Sha256Hex(sha));
    std::normal_distribution<double> noise(1, 0.01);
    // Now and then something else runs too, and takes two to ten times as long,
    // so that no series has narrow bounds.
    const double disturbance =
        random_() % 100 == 0 ? 2 + static_cast<double>(random_() % 9) : 1;
    const double base = 1000.0 * (device + 1) / (kind + 1) * disturbance;
    m.set_noisy(disturbance > 1);
    for (int i = 0; i < options_.samples; ++i) {
      m.add_samples_us(static_cast<float>(base * noise(random_)));
    }
    m.set_median_us(base * noise(random_));
    m.set_p90_us(m.median_us() * 1.02);
    m.set_mad_us(base * 0.01);
    m.set_runs(options_.samples);
    m.set_peak_memory_bytes(100'000'000 + static_cast<int64_t>(base));
    m.set_file_size_bytes(kind < 2 ? 16'000'000 : 4'000'000);
    for (v1::Environment* environment :
         {m.mutable_before(), m.mutable_after()}) {
      environment->set_cpu_model("Cortex-A76");
      environment->set_cores(4);
      environment->set_governor("performance");
      environment->set_os("Debian GNU/Linux 12 (bookworm)");
      environment->set_kernel("Linux 6.1.0 aarch64");
      environment->set_build_version("0.1.0");
      for (int i = 0; i < 4; ++i) environment->add_cpu_freq_khz(2'400'000);
      environment->set_temperature_mc(48'000);
    }
    for (int i = 0; i < 20; ++i) {
      v1::OpTime& op = *m.add_op_times();
      op.set_op(absl::StrCat("QuantizedOp", i));
      op.set_count(i + 1);
      op.set_total_us(base / (i + 2));
    }
  }

  storage::MetadataStore& store_;
  const Options& options_;
  std::mt19937 random_{1};
};

// As in a farm at work something is written between any two questions, after
// which SQLite reads all it needs anew.
void WriteSomething(storage::MetadataStore& store) {
  storage::WriteBatch batch;
  batch.recipes.emplace_back().set_name("bench");
  if (!store.Commit(batch).ok()) std::abort();
}

// What this process has computed, in milliseconds: on a shared machine steadier
// than the clock, and as good where all that is read is in memory.
double ComputedMilliseconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 +
         static_cast<double>(time.tv_nsec) * 1e-6;
}

double Milliseconds(const Options& options) {
  return options.cpu_time
             ? ComputedMilliseconds()
             : absl::ToDoubleMilliseconds(absl::Now() - absl::UnixEpoch());
}

void Time(const char* what, storage::MetadataStore& store,
          const Options& options, const std::function<size_t()>& ask) {
  std::vector<double> milliseconds;
  size_t found = 0;
  for (int i = 0; i < options.repeats; ++i) {
    WriteSomething(store);
    const double start = Milliseconds(options);
    found = ask();
    milliseconds.push_back(Milliseconds(options) - start);
  }
  const double first = milliseconds[0];
  std::sort(milliseconds.begin(), milliseconds.end());
  absl::PrintF("%-58s %8.2f %8.2f %8.2f %8d\n", what, first,
               milliseconds[milliseconds.size() / 2], milliseconds.back(),
               found);
  std::fflush(stdout);
}

MeasurementFilter With(const std::function<void(MeasurementFilter&)>& set) {
  MeasurementFilter filter;
  set(filter);
  return filter;
}

struct NamedFilter {
  const char* name;
  std::function<void(MeasurementFilter&)> set;
};

// Everything that can be asked for, each by what few, many, and no results
// have.
std::vector<NamedFilter> AllFilters() {
  const auto metric = [](v1::Metric which, double at_least, double below) {
    return [=](MeasurementFilter& f) {
      f.metrics.push_back({which, at_least, below});
    };
  };
  return {
      {"--model=NAME",
       [](auto& f) {
         f.model = storage::ModelFilter{"", "model3.pb"};
       }},
      {"--model=SHA",
       [](auto& f) {
         f.model = storage::ModelFilter{Sha256Hex("model 100"), ""};
       }},
      {"--recipe, half", [](auto& f) { f.recipe_name = "int8"; }},
      {"--recipe, none", [](auto& f) { f.recipe_name = "none"; }},
      {"--device", [](auto& f) { f.device = "device7"; }},
      {"--variant, half", [](auto& f) { f.variant = "float"; }},
      {"--threads, half", [](auto& f) { f.threads = 4; }},
      {"--job", [](auto& f) { f.job_id = "job400000"; }},
      {"--tag, one commit", [](auto& f) { f.tag = "commit=100"; }},
      {"--tag, a seventh", [](auto& f) { f.tag = "nightly"; }},
      {"--tag, all", [](auto& f) { f.tag = "bench"; }},
      {"--since, half", [](auto& f) { f.from_time = kStart + kYear / 2; }},
      {"--until, half", [](auto& f) { f.until_time = kStart + kYear / 2; }},
      {"--until, the first day",
       [](auto& f) { f.until_time = kStart + absl::Hours(24); }},
      {"--where median, half", metric(v1::MEDIAN_US, 8000, kNoBound)},
      {"--where median, few", metric(v1::MEDIAN_US, 60'000, 65'000)},
      {"--where median, none", metric(v1::MEDIAN_US, 1e12, kNoBound)},
      {"--where p90, few", metric(v1::P90_US, 450'000, kNoBound)},
      {"--where memory, few",
       metric(v1::PEAK_MEMORY_BYTES, 100'450'000, kNoBound)},
      {"--where size, half", metric(v1::FILE_SIZE_BYTES, 0, 5e6)},
  };
}

void AskForResults(storage::MetadataStore& store, const Options& options) {
  const auto list = [&](const char* what, const MeasurementFilter& filter,
                        storage::PageRequest page = {0, 100}) {
    Time(what, store, options,
         [&] { return store.QueryMeasurements(filter, page).value().size(); });
  };
  list("results", {});
  list("results, 1000", {}, {0, 1000});
  list("results --full, 400", With([](auto& f) { f.full = true; }), {0, 400});
  list("results, a page in the middle", {}, {options.measurements / 2, 100});
  list("results --device", With([](auto& f) { f.device = "device7"; }));
  list("results --recipe --variant --threads", With([](auto& f) {
         f.recipe_name = "int8";
         f.variant = "float";
         f.threads = 4;
       }));
  list("results --recipe, a page in the middle",
       With([](auto& f) { f.recipe_name = "int8"; }),
       {options.measurements / 2, 100});
  list("results --model=NAME --device", With([](auto& f) {
         f.model = storage::ModelFilter{"", "model3.pb"};
         f.device = "device7";
       }));
  list("results --model=SHA", With([](auto& f) {
         f.model = storage::ModelFilter{Sha256Hex("model 100"), ""};
       }));
  list(
      "results --model=6 DIGITS --device", With([](auto& f) {
        f.model = storage::ModelFilter{Sha256Hex("model 100").substr(0, 6), ""};
        f.device = "device7";
      }));
  list("results --tag, one commit",
       With([](auto& f) { f.tag = "commit=100"; }));
  list("results --tag, a seventh of all",
       With([](auto& f) { f.tag = "nightly"; }));
  list("results --tag --device --variant", With([](auto& f) {
         f.tag = "nightly";
         f.device = "device7";
         f.variant = "float";
       }));
  list("results, a day half a year ago", With([](auto& f) {
         f.from_time = kStart + kYear / 2;
         f.until_time = f.from_time + absl::Hours(24);
       }));
  list("results --device, a day half a year ago", With([](auto& f) {
         f.device = "device7";
         f.from_time = kStart + kYear / 2;
         f.until_time = f.from_time + absl::Hours(24);
       }));
  list("results --where, half match", With([](auto& f) {
         f.metrics.push_back({v1::MEDIAN_US, 8000});
       }));
  list("results --where, nothing matches", With([](auto& f) {
         f.metrics.push_back({v1::MEDIAN_US, 1e12});
       }));
  list("results --where, within all bounds, nothing matches", With([](auto& f) {
         f.metrics.push_back({v1::MEDIAN_US, 1000, 8000});
         f.metrics.push_back({v1::P90_US, 8200});
       }));
  list("results that are not there", With([](auto& f) {
         f.device = "device7";
         f.recipe_name = "none";
       }));
  list("results --job", With([](auto& f) { f.job_id = "job400000"; }));
  list("results --id", With([](auto& f) { f.result_id = 400'000; }));
}

// Milliseconds, and what was asked and found.
using Asked = std::pair<double, std::string>;

Asked MedianOfThree(storage::MetadataStore& store, const Options& options,
                    const std::string& what,
                    const std::function<size_t()>& ask) {
  std::vector<double> milliseconds;
  size_t found = 0;
  for (int i = 0; i < 3; ++i) {
    WriteSomething(store);
    const double start = Milliseconds(options);
    found = ask();
    milliseconds.push_back(Milliseconds(options) - start);
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  return {milliseconds[1], absl::StrCat(what, ": ", found)};
}

void PrintSlowest(const char* what, std::vector<Asked> asked) {
  std::sort(asked.rbegin(), asked.rend());
  absl::PrintF("%d %s; median %.2f, slowest:\n", asked.size(), what,
               asked[asked.size() / 2].first);
  for (size_t i = 0; i < std::min<size_t>(asked.size(), 15); ++i) {
    absl::PrintF("  %-75s %8.2f\n", asked[i].second, asked[i].first);
  }
  std::fflush(stdout);
}

// Each filter alone and with each other one: the newest 100, and pages of 1000
// from the newest and from the middle.
void AskForPairs(storage::MetadataStore& store, const Options& options) {
  const std::vector<NamedFilter> filters = AllFilters();
  std::vector<Asked> asked;
  for (size_t i = 0; i < filters.size(); ++i) {
    for (size_t j = i; j < filters.size(); ++j) {
      MeasurementFilter filter = With(filters[i].set);
      if (j > i) filters[j].set(filter);
      for (const storage::PageRequest& page :
           {storage::PageRequest{0, 100}, storage::PageRequest{0, 1000},
            storage::PageRequest{options.measurements / 2, 1000}}) {
        asked.push_back(MedianOfThree(
            store, options,
            absl::StrCat(filters[i].name, j > i ? " and " : "",
                         j > i ? filters[j].name : "", ", ", page.limit,
                         page.before > 0 ? " from the middle" : ""),
            [&] {
              return store.QueryMeasurements(filter, page).value().size();
            }));
      }
    }
  }
  PrintSlowest("questions by one or two filters", std::move(asked));
}

void AskForSeries(storage::MetadataStore& store, const Options& options) {
  const auto history = [&](const char* what, const MeasurementFilter& filter,
                           storage::SeriesRequest request) {
    Time(what, store, options, [&] {
      const storage::SeriesList list =
          store.ListSeries(filter, request).value();
      size_t points = 0;
      for (const auto& s : list.series) points += s.points.size();
      return points;
    });
  };
  history("history", {}, {});
  history("history --model=NAME --device", With([](auto& f) {
            f.model = storage::ModelFilter{"", "model3.pb"};
            f.device = "device7";
          }),
          {});
  history("history, 10 series of 1000 points", {}, {10, 1000});
  history("history, 100 series of 1000 points", {}, {100, 1000});
  history("compare, one side (a model's newest)", With([](auto& f) {
            f.model = storage::ModelFilter{Sha256Hex("model 100"), ""};
          }),
          {1000, 1, false});
}

// How many series are worse.
size_t Regressions(storage::MetadataStore& store,
                   const MeasurementFilter& filter,
                   const v1::RegressionRule& rule) {
  size_t found = 0;
  storage::SeriesRequest request;
  request.max_series = std::numeric_limits<size_t>::max();
  request.max_points = rule.window() * (rule.skip_noisy() ? 2 : 1);
  request.enough = [&](absl::Span<const storage::PointNumbers> points) {
    return server::IsEnough(rule, points);
  };
  request.take = [&](const storage::SeriesKey&,
                     absl::Span<const storage::PointNumbers> points) {
    if (server::IsFine(rule, points)) return;
    found += server::Judge(rule, points).regressed ? 1 : 0;
  };
  if (!store.ListSeries(filter, request).ok()) std::abort();
  return found;
}

void AskForRegressions(storage::MetadataStore& store, const Options& options) {
  v1::RegressionRule rule = server::CompleteRule({}).value();
  const auto regressions = [&](const char* what) {
    Time(what, store, options, [&] { return Regressions(store, {}, rule); });
  };
  regressions("regressions in all series");
  rule.set_kind(v1::RegressionRule::RATIO);
  regressions("regressions --rule=ratio");
  // All are worse, so that all past points are looked at.
  rule.set_limit(0.5);
  regressions("regressions, all series are worse");
  rule.set_kind(v1::RegressionRule::PAST_P90S);
  rule.set_window(100);
  regressions("regressions --window=100");
}

// Each rule about each metric, with a short and a long window, of what each
// filter leaves.
void AskForAllRegressions(storage::MetadataStore& store,
                          const Options& options) {
  std::vector<Asked> asked;
  for (const NamedFilter& chosen : AllFilters()) {
    for (int i = 0; i < 3 * 4 * 2 * 2; ++i) {
      v1::RegressionRule rule;
      rule.set_kind(static_cast<v1::RegressionRule::Kind>(1 + i % 3));
      rule.set_metric(static_cast<v1::Metric>(1 + i / 3 % 4));
      rule.set_window(i / 12 % 2 == 0 ? 20 : 100);
      rule.set_skip_noisy(i / 24 == 1);
      rule = server::CompleteRule(rule).value();
      asked.push_back(MedianOfThree(
          store, options,
          absl::StrCat("regressions ", chosen.name, ", ",
                       rule.ShortDebugString()),
          [&] { return Regressions(store, With(chosen.set), rule); }));
    }
  }
  PrintSlowest("questions for regressions", std::move(asked));
}

// Lets go of the oldest jobs in as many steps as asked for, with a question
// after each. While a step runs nothing else is written.
absl::Status LetGo(storage::MetadataStore& store, const Options& options) {
  storage::RetentionPolicy policy;
  policy.samples_before = policy.jobs_before = kStart + kYear / 10;
  const v1::RegressionRule rule = server::CompleteRule({}).value();
  std::vector<double> steps;
  std::vector<double> questions;
  int64_t jobs = 0;
  for (int i = 0; i < options.retention_steps; ++i) {
    const double start = Milliseconds(options);
    OPTFARM_ASSIGN_OR_RETURN(const storage::RetentionCounts counts,
                             store.Prune(policy));
    jobs += counts.jobs;
    const double end = Milliseconds(options);
    Regressions(store, {}, rule);
    questions.push_back(Milliseconds(options) - end);
    steps.push_back(end - start);
  }
  for (std::vector<double>* times : {&steps, &questions}) {
    std::sort(times->begin(), times->end());
  }
  absl::PrintF(
      "%d steps of retention let %d jobs go: median %.1f ms, longest %.1f; "
      "regressions after each: median %.2f, longest %.2f\n",
      options.retention_steps, jobs, steps[steps.size() / 2], steps.back(),
      questions[questions.size() / 2], questions.back());
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  const bool there = Exists(options.path);
  const absl::Time begin = absl::Now();
  OPTFARM_ASSIGN_OR_RETURN(const auto store,
                           storage::OpenSqliteMetadataStore(
                               options.path, begin, options.memory_mb << 20));
  absl::PrintF("opened in %.1f s\n",
               absl::ToDoubleSeconds(absl::Now() - begin));
  if (there && options.retention_steps > 0) return LetGo(*store, options);
  if (!there) {
    const absl::Time start = absl::Now();
    OPTFARM_RETURN_IF_ERROR(Writer(*store, options).WriteAll());
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    absl::PrintF(
        "took in %d measurements, %d times %d a durable commit, in %.0f s: "
        "%.0f a second\n",
        options.measurements, options.together, options.batch, seconds,
        options.measurements / seconds);
  }
  absl::PrintF("%-58s %8s %8s %8s %8s\n", "milliseconds", "first", "median",
               "worst", "found");
  AskForResults(*store, options);
  AskForSeries(*store, options);
  AskForRegressions(*store, options);
  AskForAllRegressions(*store, options);
  AskForPairs(*store, options);
  for (const auto& [what, sql] :
       std::vector<std::pair<const char*, const char*>>{
           {"sql: newest of a device",
            "SELECT * FROM results WHERE device = 'device7' AND variant = "
            "'float' ORDER BY result_id DESC LIMIT 20"},
           {"sql: newest of a model, by its name",
            "SELECT * FROM results WHERE result_id IN (SELECT result_id FROM "
            "measurements JOIN series USING (series_id) WHERE model_name = "
            "'model3.pb' ORDER BY result_id DESC LIMIT 100)"},
           {"sql: newest with a tag that a seventh has",
            "SELECT * FROM results WHERE result_id IN (SELECT result_id FROM "
            "result_tags WHERE tag = 'nightly' ORDER BY result_id DESC LIMIT "
            "100)"},
           {"sql: newest within bounds that few meet",
            "SELECT * FROM results WHERE median_us BETWEEN 60000 AND 65000 "
            "ORDER BY result_id DESC LIMIT 100"},
           {"sql: means by device of a week half a year ago",
            "SELECT device, AVG(median_us) FROM results WHERE create_time "
            "BETWEEN 1765768000e6 AND 1766372800e6 GROUP BY device"},
           {"sql: a series' history",
            "SELECT create_time, median_us, p90_us FROM results WHERE "
            "model_name = 'model3.pb' AND device = 'device7' AND variant = "
            "'float' AND threads = 1 ORDER BY result_id"},
           {"sql: a job's results",
            "SELECT * FROM results WHERE job_id = 'job400000'"},
           {"sql: mean by device, from the sums of series",
            "SELECT device, SUM(results), SUM(sum_median_us) / SUM(results) "
            "FROM series GROUP BY device"},
           {"sql: mean by device, all rows of the view",
            "SELECT device, COUNT(*), AVG(median_us) FROM results GROUP BY "
            "device"},
           {"sql: mean by device, all rows",
            "SELECT device, COUNT(*), AVG(median_us) FROM measurements JOIN "
            "series USING (series_id) GROUP BY device"},
           {"sql: mean of all rows",
            "SELECT AVG(median_us) FROM measurements"}}) {
    Time(what, *store, options, [&, query = sql] {
      return static_cast<size_t>(
          storage::RunReadOnlySql(options.path, query,
                                  {.max_time = absl::Minutes(1)})
              .value()
              .rows_size());
    });
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace optfarm

int main(int argc, char** argv) {
  optfarm::Options options;
  CLI::App app("Measures the results store");
  app.add_option("--path", options.path, "Database; made when absent")
      ->required();
  app.add_option("--measurements", options.measurements, "How many to write");
  app.add_option("--batch", options.batch, "Measurements of a completion");
  app.add_option("--together", options.together, "Batches in one commit");
  app.add_option("--devices", options.devices, "Devices");
  app.add_option("--models", options.models, "Names of models");
  app.add_option("--samples", options.samples, "Runs of each measurement");
  app.add_option("--repeats", options.repeats, "Times each question is asked");
  app.add_flag("--cpu_time", options.cpu_time,
               "Show what was computed, not what passed on the clock");
  app.add_option("--results_memory_mb", options.memory_mb,
                 "Memory for the numbers of results");
  app.add_option("--retention_steps", options.retention_steps,
                 "Ask nothing of a store that is there, but let go of the "
                 "oldest jobs in so many steps");
  app.add_flag("--tag_all", options.tag_all, "Give all jobs one more tag");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = optfarm::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
