#include "client_cli/tables/results_table.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client_cli/tables/human_units.h"
#include "optfarm/v1/measurement.pb.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::client_cli {
namespace {

constexpr absl::string_view kBaseline = "float";

// What one row is about. Measurement absent: no device measured the variant.
struct Row {
  std::string variant;
  const v1::Measurement* measurement = nullptr;
  // The original's measurement on the same device with as many threads.
  const v1::Measurement* baseline = nullptr;
};

// A gate's name without brackets, and the device and threads in them.
struct GateScope {
  std::string name;
  std::string device;
  int64_t threads = 0;
};

GateScope ParseGateName(const std::string& text) {
  GateScope scope;
  const size_t open = text.find('[');
  scope.name = text.substr(0, open);
  if (open == std::string::npos || text.back() != ']') return scope;
  const std::string inside = text.substr(open + 1, text.size() - open - 2);
  const std::vector<std::string> parts = absl::StrSplit(inside, ',');
  scope.device = parts[0];
  if (parts.size() > 1 && !absl::SimpleAtoi(parts[1], &scope.threads)) {
    scope.threads = 0;
  }
  return scope;
}

bool GateConcerns(const GateScope& scope, const v1::Measurement* measurement) {
  if (scope.device.empty() || measurement == nullptr) return true;
  return scope.device == measurement->device() &&
         (scope.threads == 0 || scope.threads == measurement->threads());
}

bool IsAccuracyGate(const std::string& name) {
  return name == "max_accuracy_drop" || name == "max_top5_accuracy_drop" ||
         name == "min_top1_agreement";
}

// The agreement that decides: the worst of the outputs it is meaningful for.
std::optional<double> WorstAgreement(const v1::Report* report) {
  std::optional<double> worst;
  if (report == nullptr) return worst;
  for (const v1::TensorComparison& output : report->outputs_compared()) {
    if (output.top1_agreement() < 0) continue;
    if (!worst || output.top1_agreement() < *worst) {
      worst = output.top1_agreement();
    }
  }
  return worst;
}

int64_t FileSize(const Row& row, const v1::Report* report) {
  if (row.measurement != nullptr && row.measurement->file_size_bytes() > 0) {
    return row.measurement->file_size_bytes();
  }
  if (report == nullptr) return 0;
  return row.variant == kBaseline ? report->size_before().file_bytes()
                                  : report->size_after().file_bytes();
}

int64_t BaselineFileSize(const Row& row, const v1::Report* report) {
  if (row.baseline != nullptr && row.baseline->file_size_bytes() > 0) {
    return row.baseline->file_size_bytes();
  }
  return report == nullptr ? 0 : report->size_before().file_bytes();
}

std::optional<double> Speedup(const Row& row) {
  if (row.measurement == nullptr || row.baseline == nullptr ||
      row.measurement->median_us() <= 0 || row.baseline->median_us() <= 0) {
    return std::nullopt;
  }
  return row.baseline->median_us() / row.measurement->median_us();
}

void AddNoise(const v1::Measurement* measurement, const std::string& whose,
              std::vector<std::string>* reasons) {
  if (measurement == nullptr || !measurement->noisy()) return;
  if (measurement->noise_reasons().empty()) {
    reasons->push_back(absl::StrCat(whose, "not steady"));
  }
  for (const std::string& reason : measurement->noise_reasons()) {
    reasons->push_back(absl::StrCat(whose, reason));
  }
}

void AddGates(const Row& row, const JobResults& results, VerdictFacts* facts) {
  for (const v1::GateResult* gate : results.gates) {
    const GateScope scope = ParseGateName(gate->name());
    if (!GateConcerns(scope, row.measurement)) continue;
    if (gate->passed()) {
      facts->accuracy_bound_held |= IsAccuracyGate(scope.name);
    } else {
      facts->failed_gates.push_back(
          {scope.name, gate->value(), gate->bound(), gate->message()});
    }
  }
}

VerdictFacts FactsOf(const Row& row, const JobResults& results) {
  VerdictFacts facts;
  facts.baseline = row.variant == kBaseline;
  if (facts.baseline) return facts;
  AddGates(row, results, &facts);
  const int64_t size = FileSize(row, results.report);
  const int64_t baseline_size = BaselineFileSize(row, results.report);
  if (size > 0 && baseline_size > 0) {
    facts.size_ratio =
        static_cast<double>(size) / static_cast<double>(baseline_size);
  }
  facts.speedup = Speedup(row);
  if (facts.speedup) {
    facts.speed_difference_is_clear =
        std::fabs(row.baseline->median_us() - row.measurement->median_us()) >
        3 * (row.baseline->mad_us() + row.measurement->mad_us());
  }
  AddNoise(row.measurement, "", &facts.noise_reasons);
  AddNoise(row.baseline, "float: ", &facts.noise_reasons);
  const v1::Report* report = results.report;
  if (report != nullptr && report->has_float_accuracy() &&
      report->has_optimized_accuracy()) {
    facts.top1_change =
        report->optimized_accuracy().top1() - report->float_accuracy().top1();
  }
  facts.agreement = WorstAgreement(report);
  return facts;
}

Cell BytesCell(int64_t bytes) {
  return bytes > 0 ? Cell(bytes, HumanBytes(bytes)) : Cell();
}

Cell MicrosecondsCell(const v1::Measurement* measurement, double value) {
  if (measurement == nullptr) return Cell();
  return Cell(value, HumanMicroseconds(value));
}

const v1::Accuracy* AccuracyOf(const Row& row, const v1::Report* report) {
  if (report == nullptr) return nullptr;
  if (row.variant == kBaseline) {
    return report->has_float_accuracy() ? &report->float_accuracy() : nullptr;
  }
  return report->has_optimized_accuracy() ? &report->optimized_accuracy()
                                          : nullptr;
}

absl::string_view AnswerName(Verdict::Answer answer) {
  switch (answer) {
    case Verdict::Answer::kBaseline:
      return "baseline";
    case Verdict::Answer::kYes:
      return "yes";
    case Verdict::Answer::kNo:
      return "no";
    case Verdict::Answer::kUnclear:
      break;
  }
  return "unclear";
}

std::vector<Row> MakeRows(const JobResults& results) {
  using Place = std::pair<std::string, int>;
  std::map<Place, const v1::Measurement*> baselines;
  std::set<std::string> measured;
  for (const v1::Measurement* measurement : results.measurements) {
    measured.insert(measurement->variant());
    if (measurement->variant() == kBaseline) {
      baselines[{measurement->device(), measurement->threads()}] = measurement;
    }
  }
  std::vector<Row> rows;
  if (results.report != nullptr) {
    const std::string recipe = results.report->recipe_name().empty()
                                   ? "optimized"
                                   : results.report->recipe_name();
    for (const std::string& variant : {std::string(kBaseline), recipe}) {
      if (!measured.contains(variant)) rows.push_back({.variant = variant});
    }
  }
  // One device after the other, in the order of arrival; within a device by
  // thread count; the original first.
  std::map<std::string, size_t> device_order;
  std::map<std::tuple<size_t, int, bool, std::string>, Row> sorted;
  for (const v1::Measurement* measurement : results.measurements) {
    const size_t place =
        device_order.try_emplace(measurement->device(), device_order.size())
            .first->second;
    const auto baseline =
        baselines.find({measurement->device(), measurement->threads()});
    sorted[{place, measurement->threads(), measurement->variant() != kBaseline,
            measurement->variant()}] = {
        .variant = measurement->variant(),
        .measurement = measurement,
        .baseline = baseline == baselines.end() ? nullptr : baseline->second};
  }
  for (auto& [key, row] : sorted) rows.push_back(std::move(row));
  return rows;
}

struct NamedCell {
  Table::Column column;
  Cell cell;
};

std::vector<NamedCell> PlaceCells(const Row& row, const JobResults& results) {
  using Align = Table::Align;
  const v1::Measurement* m = row.measurement;
  const std::optional<double> speedup = Speedup(row);
  std::vector<NamedCell> cells;
  cells.push_back({{"variant", "VARIANT"}, Cell::Text(row.variant)});
  cells.push_back({{"device", "DEVICE"}, m ? Cell::Text(m->device()) : Cell()});
  cells.push_back({{"processor", "PROCESSOR"},
                   m ? Cell(m->before().cpu_model(),
                            ShortProcessorName(m->before().cpu_model()))
                     : Cell()});
  cells.push_back({{"threads", "THREADS", Align::kRight},
                   m ? Cell::Integer(m->threads()) : Cell()});
  cells.push_back({{"file_size_bytes", "SIZE", Align::kRight},
                   BytesCell(FileSize(row, results.report))});
  cells.push_back({{"first_us", "FIRST", Align::kRight},
                   MicrosecondsCell(m, m ? m->first_us() : 0)});
  cells.push_back({{"median_us", "MEDIAN", Align::kRight},
                   MicrosecondsCell(m, m ? m->median_us() : 0)});
  cells.push_back({{"mad_us", "SPREAD", Align::kRight},
                   MicrosecondsCell(m, m ? m->mad_us() : 0)});
  cells.push_back({{"peak_memory_bytes", "MEMORY", Align::kRight},
                   m ? BytesCell(m->peak_memory_bytes()) : Cell()});
  cells.push_back({{"speedup", "SPEED-UP", Align::kRight},
                   speedup ? Cell(*speedup, HumanRatio(*speedup)) : Cell()});
  return cells;
}

void AddAccuracyCells(const Row& row, const JobResults& results,
                      OutputFormat format, std::vector<NamedCell>* cells) {
  using Align = Table::Align;
  const bool text = format == OutputFormat::kTable;
  const bool labels =
      results.report != nullptr && (results.report->has_float_accuracy() ||
                                    results.report->has_optimized_accuracy());
  if (labels || !text) {
    const v1::Accuracy* accuracy = AccuracyOf(row, results.report);
    cells->push_back(
        {{"top1_percent", "TOP-1", Align::kRight},
         accuracy ? Cell(accuracy->top1(), HumanPercent(accuracy->top1()))
                  : Cell()});
    cells->push_back(
        {{"top5_percent", "TOP-5", Align::kRight},
         accuracy ? Cell(accuracy->top5(), HumanPercent(accuracy->top5()))
                  : Cell()});
  }
  if (!labels || !text) {
    const std::optional<double> agreement =
        row.variant == kBaseline ? std::nullopt
                                 : WorstAgreement(results.report);
    cells->push_back({{"top1_agreement", "AGREEMENT", Align::kRight},
                      agreement
                          ? Cell(*agreement, HumanPercent(*agreement * 100))
                          : Cell()});
  }
}

std::vector<NamedCell> MakeCells(const Row& row, const JobResults& results,
                                 OutputFormat format) {
  const v1::Measurement* m = row.measurement;
  const Verdict verdict = DecideVerdict(FactsOf(row, results));
  std::vector<NamedCell> cells = PlaceCells(row, results);
  AddAccuracyCells(row, results, format, &cells);
  if (format == OutputFormat::kTable) {
    cells.push_back({{"verdict", "VERDICT"}, Cell::Text(verdict.text)});
    return cells;
  }
  cells.push_back({{"runs", "RUNS", Table::Align::kRight},
                   m ? Cell::Integer(m->runs()) : Cell()});
  cells.push_back({{"noisy", "NOISY"}, m ? Cell(m->noisy(), "") : Cell()});
  cells.push_back(
      {{"verdict", "VERDICT"}, Cell::Text(AnswerName(verdict.answer))});
  cells.push_back({{"verdict_text", "WHY"}, Cell::Text(verdict.text)});
  return cells;
}

}  // namespace

std::string ShortProcessorName(const std::string& cpu_model) {
  std::string name =
      absl::StrReplaceAll(cpu_model, {{"(R)", ""}, {"(TM)", ""}, {"(tm)", ""}});
  name = name.substr(0, name.find('@'));
  std::vector<std::string> words;
  for (absl::string_view word : absl::StrSplit(name, ' ', absl::SkipEmpty())) {
    if (word != "CPU" && word != "Processor") words.emplace_back(word);
  }
  return words.empty() ? "-" : absl::StrJoin(words, " ");
}

Table MakeResultsTable(const JobResults& results, OutputFormat format) {
  std::vector<Table::Column> columns;
  for (const NamedCell& named : MakeCells(Row(), results, format)) {
    columns.push_back(named.column);
  }
  Table table(std::move(columns));
  for (const Row& row : MakeRows(results)) {
    std::vector<Cell> cells;
    for (NamedCell& named : MakeCells(row, results, format)) {
      cells.push_back(std::move(named.cell));
    }
    table.AddRow(std::move(cells));
  }
  return table;
}

}  // namespace optfarm::client_cli
