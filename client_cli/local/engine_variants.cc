#include "client_cli/local/engine_variants.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "client_cli/flags/flags.h"
#include "client_cli/tables/noise_text.h"

namespace optfarm::client_cli {
namespace {

// What ran a variant; nullptr: Optfarm's runtime.
const benchmark::EngineOutcome* EngineOf(
    const v1::Measurement& m,
    const std::vector<benchmark::EngineOutcome>& engines) {
  for (const benchmark::EngineOutcome& outcome : engines) {
    if (outcome.variant == m.variant() && outcome.threads == m.threads()) {
      return &outcome;
    }
  }
  return nullptr;
}

// Optfarm's runtime on the same variant with as many threads; null: there is
// none.
const v1::Measurement* OursOf(const v1::Measurement& m,
                              const std::vector<v1::Measurement>& all) {
  const std::string variant = m.variant().substr(0, m.variant().find('@'));
  for (const v1::Measurement& other : all) {
    if (other.threads() == m.threads() && other.variant() == variant) {
      return &other;
    }
  }
  return nullptr;
}

std::string ThreadsOf(int threads) {
  return absl::StrCat(threads, threads == 1 ? " thread" : " threads");
}

Cell RelativeCell(const v1::Measurement& m, const v1::Measurement* ours) {
  if (ours == nullptr || ours->median_us() <= 0) return Cell();
  const double relative = m.median_us() / ours->median_us();
  return Cell(relative, absl::StrFormat("%.2f", relative));
}

}  // namespace

absl::StatusOr<std::vector<benchmark::EngineOptions>> ParseEngineFlags(
    const std::vector<std::string>& values) {
  std::vector<benchmark::EngineOptions> engines;
  for (const std::string& value : values) {
    const size_t colon = value.find(':');
    const std::string expanded =
        colon == std::string::npos
            ? value
            : absl::StrCat(value.substr(0, colon + 1),
                           ExpandHome(value.substr(colon + 1)));
    absl::StatusOr<benchmark::EngineOptions> engine =
        benchmark::ParseEngine(expanded);
    if (!engine.ok()) {
      return UsageError(absl::StrCat("--engine: ", engine.status().message()));
    }
    if (absl::c_any_of(engines, [&](const benchmark::EngineOptions& other) {
          return other.name == engine->name;
        })) {
      return UsageError(
          absl::StrCat("--engine: ", engine->name, " is given twice"));
    }
    engines.push_back(*std::move(engine));
  }
  return engines;
}

v1::ModelFormat FormatOfEngine(absl::string_view engine) {
  return engine == "tflite" ? v1::TFLITE : v1::ONNX;
}

void AddEngineFormats(const std::vector<benchmark::EngineOptions>& engines,
                      std::vector<v1::ModelFormat>* formats) {
  if (!engines.empty() && formats->empty()) formats->push_back(v1::PB);
  for (const benchmark::EngineOptions& engine : engines) {
    const v1::ModelFormat format = FormatOfEngine(engine.name);
    if (!absl::c_linear_search(*formats, format)) formats->push_back(format);
  }
  absl::c_sort(*formats);
}

bool IsModelOfEngine(absl::string_view engine, absl::string_view path) {
  return absl::EndsWithIgnoreCase(path, benchmark::EngineModelEnding(engine));
}

absl::StatusOr<benchmark::BenchmarkVariant> EngineVariant(
    const benchmark::EngineOptions& engine, const std::string& same_as,
    const std::string& path) {
  benchmark::BenchmarkVariant variant;
  variant.name = absl::StrCat(same_as, "@", engine.name);
  variant.graph_path = path;
  variant.same_as = same_as;
  OPTFARM_ASSIGN_OR_RETURN(variant.engine,
                           benchmark::EngineProcess::Start(engine));
  return variant;
}

absl::StatusOr<MeasuredBeside> MeasureBeside(
    const std::vector<benchmark::EngineOptions>& engines,
    const benchmark::ModelBenchmarkRequest& request,
    const std::vector<int>& threads) {
  benchmark::BenchmarkRequest work;
  work.variants.push_back(request.model);
  const std::string& path = request.model.graph_path;
  for (const benchmark::EngineOptions& engine : engines) {
    if (!IsModelOfEngine(engine.name, path)) {
      return UsageError(absl::StrCat(
          "--engine: ", engine.name, " runs files whose names end in ",
          benchmark::EngineModelEnding(engine.name), ", and '",
          PrintableLine(path), "' is none; optctl graph convert writes one"));
    }
    OPTFARM_ASSIGN_OR_RETURN(work.variants.emplace_back(),
                             EngineVariant(engine, request.model.name, path));
  }
  work.threads = threads;
  const benchmark::RunLimits& limits = request.timed;
  if (limits.min_runs > 0) work.min_runs = static_cast<int>(limits.min_runs);
  work.max_time = std::min(limits.max_time, absl::Hours(1));
  work.min_time = std::min(
      limits.min_time > absl::ZeroDuration() ? limits.min_time : work.min_time,
      work.max_time);
  work.warmup_runs =
      static_cast<int>(std::clamp<int64_t>(request.warmup_runs, 1, 1'000'000));
  work.profile_runs = 0;
  work.input_files = request.input_files;
  work.input_ranges = request.input_ranges;
  work.processors = request.processors;
  work.device = request.device;
  work.build_version = request.build_version;
  MeasuredBeside measured;
  OPTFARM_ASSIGN_OR_RETURN(
      measured.measurements,
      benchmark::RunBenchmark(work, nullptr, &measured.engines));
  return measured;
}

void PrintBeside(const MeasuredBeside& measured,
                 const CommandContext& context) {
  const bool is_table = context.format == OutputFormat::kTable;
  *context.out << (is_table
                       ? MakeEngineTable(measured).ToText()
                       : MakeEngineTable(measured).ToFormat(context.format));
  std::ostream& remarks = is_table ? *context.out : *context.err;
  for (const std::string& remark : EngineRemarks(measured)) {
    remarks << remark << "\n";
  }
  std::vector<const v1::Measurement*> all;
  for (const v1::Measurement& m : measured.measurements) all.push_back(&m);
  remarks << NoiseText(all);
}

Table MakeEngineTable(const MeasuredBeside& measured) {
  using Align = Table::Align;
  Table table({{"runtime", "RUNTIME"},
               {"threads", "THREADS", Align::kRight},
               {"runs", "RUNS", Align::kRight},
               {"load_us", "LOAD", Align::kRight},
               {"first_us", "FIRST", Align::kRight},
               {"median_us", "MEDIAN", Align::kRight},
               {"mad_us", "SPREAD", Align::kRight},
               {"p90_us", "P90", Align::kRight},
               {"peak_memory_bytes", "MEMORY", Align::kRight},
               {"relative_time", "RELATIVE", Align::kRight},
               {"noisy", "NOISY"}});
  const auto time = [](double us) { return Cell(us, HumanMicroseconds(us)); };
  for (const v1::Measurement& m : measured.measurements) {
    const benchmark::EngineOutcome* engine = EngineOf(m, measured.engines);
    table.AddRow(
        {Cell::Text(engine == nullptr
                        ? "optfarm"
                        : absl::StrCat(engine->engine, " ", engine->version)),
         Cell::Integer(m.threads()), Cell::Integer(m.runs()), time(m.load_us()),
         time(m.first_us()), time(m.median_us()), time(m.mad_us()),
         time(m.p90_us()),
         m.peak_memory_bytes() > 0
             ? Cell(m.peak_memory_bytes(), HumanBytes(m.peak_memory_bytes()))
             : Cell(),
         RelativeCell(m, OursOf(m, measured.measurements)),
         Cell(m.noisy(), m.noisy() ? "noisy" : "no")});
  }
  return table;
}

std::vector<std::string> EngineRemarks(const MeasuredBeside& measured) {
  std::vector<std::string> lines;
  const auto add = [&lines](const std::string& variant, int threads,
                            absl::string_view text) {
    lines.push_back(PrintableLine(
        absl::StrCat(variant, ", ", ThreadsOf(threads), ": ", text)));
  };
  for (const v1::Measurement& m : measured.measurements) {
    if (EngineOf(m, measured.engines) == nullptr) continue;
    add(m.variant(), m.threads(), m.numeric_check().message());
  }
  for (const benchmark::EngineOutcome& outcome : measured.engines) {
    if (outcome.failure.empty()) continue;
    add(outcome.variant, outcome.threads, outcome.failure);
  }
  return lines;
}

}  // namespace optfarm::client_cli
