#include "client_cli/tables/results_table.h"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/human_units.h"
#include "client_cli/tables/noise_text.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {
namespace {

// A verdict and what it is about.
struct Row {
  const v1::ShippingVerdict* verdict = nullptr;
  // Null: no device measured the variant.
  const v1::Measurement* measurement = nullptr;
};

std::vector<Row> MakeRows(const v1::Job& job) {
  std::map<std::tuple<absl::string_view, absl::string_view, int>,
           const v1::Measurement*>
      measured;
  for (const v1::Measurement& m : job.measurements()) {
    measured[{m.variant(), m.device(), m.threads()}] = &m;
  }
  std::vector<Row> rows;
  for (const v1::ShippingVerdict& verdict : job.verdicts()) {
    const auto found =
        measured.find({verdict.variant(), verdict.device(), verdict.threads()});
    rows.push_back(
        {&verdict, found == measured.end() ? nullptr : found->second});
  }
  return rows;
}

Cell BytesCell(int64_t bytes) {
  return bytes > 0 ? Cell(bytes, HumanBytes(bytes)) : Cell();
}

Cell MicrosecondsCell(const v1::Measurement* measurement, double value) {
  if (measurement == nullptr) return Cell();
  return Cell(value, HumanMicroseconds(value));
}

// Null: the samples had no labels.
const v1::Accuracy* AccuracyOf(const v1::ShippingVerdict& verdict,
                               const v1::Report& report) {
  // Accuracy is that of Optfarm's runtime, not of an engine beside it.
  if (absl::StrContains(verdict.variant(), '@')) return nullptr;
  if (verdict.answer() == v1::ShippingVerdict::BASELINE) {
    return report.has_float_accuracy() ? &report.float_accuracy() : nullptr;
  }
  return report.has_optimized_accuracy() ? &report.optimized_accuracy()
                                         : nullptr;
}

// "yes": the proto's name as the table has it.
std::string AnswerName(v1::ShippingVerdict::Answer answer) {
  if (answer == v1::ShippingVerdict::ANSWER_UNSPECIFIED) return "";
  return absl::AsciiStrToLower(v1::ShippingVerdict::Answer_Name(answer));
}

struct NamedCell {
  Table::Column column;
  Cell cell;
};

std::vector<NamedCell> PlaceCells(const Row& row) {
  using Align = Table::Align;
  const v1::Measurement* m = row.measurement;
  const v1::ShippingVerdict& verdict = *row.verdict;
  std::vector<NamedCell> cells;
  cells.push_back({{"variant", "VARIANT"}, Cell::Text(verdict.variant())});
  cells.push_back(
      {{"device", "DEVICE"},
       verdict.device().empty() ? Cell() : Cell::Text(verdict.device())});
  cells.push_back({{"processor", "PROCESSOR"},
                   m ? Cell(m->before().cpu_model(),
                            ShortProcessorName(m->before().cpu_model()))
                     : Cell()});
  cells.push_back(
      {{"threads", "THREADS", Align::kRight},
       verdict.threads() > 0 ? Cell::Integer(verdict.threads()) : Cell()});
  cells.push_back({{"file_size_bytes", "SIZE", Align::kRight},
                   BytesCell(verdict.file_size_bytes())});
  cells.push_back({{"first_us", "FIRST", Align::kRight},
                   MicrosecondsCell(m, m ? m->first_us() : 0)});
  cells.push_back({{"median_us", "MEDIAN", Align::kRight},
                   MicrosecondsCell(m, m ? m->median_us() : 0)});
  cells.push_back({{"mad_us", "SPREAD", Align::kRight},
                   MicrosecondsCell(m, m ? m->mad_us() : 0)});
  cells.push_back({{"peak_memory_bytes", "MEMORY", Align::kRight},
                   m ? BytesCell(m->peak_memory_bytes()) : Cell()});
  cells.push_back({{"speedup", "SPEED-UP", Align::kRight},
                   verdict.has_speedup()
                       ? Cell(verdict.speedup(), HumanRatio(verdict.speedup()))
                       : Cell()});
  return cells;
}

void AddAccuracyCells(const v1::ShippingVerdict& verdict,
                      const v1::Report& report, OutputFormat format,
                      std::vector<NamedCell>* cells) {
  using Align = Table::Align;
  const bool text = format == OutputFormat::kTable;
  const bool labels =
      report.has_float_accuracy() || report.has_optimized_accuracy();
  if (labels || !text) {
    const v1::Accuracy* accuracy = AccuracyOf(verdict, report);
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
    cells->push_back({{"top1_agreement", "AGREEMENT", Align::kRight},
                      verdict.has_agreement()
                          ? Cell(verdict.agreement(),
                                 HumanPercent(verdict.agreement() * 100))
                          : Cell()});
  }
}

std::vector<NamedCell> MakeCells(const Row& row, const v1::Report& report,
                                 OutputFormat format) {
  const v1::Measurement* m = row.measurement;
  const v1::ShippingVerdict& verdict = *row.verdict;
  std::vector<NamedCell> cells = PlaceCells(row);
  AddAccuracyCells(verdict, report, format, &cells);
  if (format == OutputFormat::kTable) {
    cells.push_back({{"verdict", "VERDICT"}, Cell::Text(verdict.text())});
    return cells;
  }
  cells.push_back({{"runs", "RUNS", Table::Align::kRight},
                   m ? Cell::Integer(m->runs()) : Cell()});
  cells.push_back({{"noisy", "NOISY"}, m ? Cell(m->noisy(), "") : Cell()});
  cells.push_back(
      {{"verdict", "VERDICT"}, Cell::Text(AnswerName(verdict.answer()))});
  cells.push_back({{"verdict_text", "WHY"}, Cell::Text(verdict.text())});
  return cells;
}

// Of names in the form of 80 columns.
constexpr size_t kMostNameBytes = 12;

Cell ShortName(const std::string& name) {
  if (name.size() <= kMostNameBytes) return Cell::Text(name);
  size_t end = kMostNameBytes - 2;
  while (end > 0 && (name[end] & 0xC0) == 0x80) --end;
  return Cell(name, absl::StrCat(name.substr(0, end), ".."));
}

// The columns that most people want, in 80 characters.
std::vector<NamedCell> NarrowCells(const Row& row, const v1::Report& report) {
  using Align = Table::Align;
  std::vector<NamedCell> cells;
  for (NamedCell& named : MakeCells(row, report, OutputFormat::kTable)) {
    const std::string& name = named.column.name;
    if (name == "processor" || name == "first_us" || name == "mad_us" ||
        name == "peak_memory_bytes" || name == "top5_percent" ||
        name == "verdict") {
      continue;
    }
    if (name == "speedup") named.column.title = "SPEED";
    if (name == "top1_agreement") named.column.title = "AGREE";
    if (name == "variant") named.cell = ShortName(row.verdict->variant());
    if (name == "device" && !row.verdict->device().empty()) {
      named.cell = ShortName(row.verdict->device());
    }
    cells.push_back(std::move(named));
  }
  cells.push_back({{"verdict", "VERDICT", Align::kLeft},
                   Cell::Text(row.verdict->answer() ==
                                      v1::ShippingVerdict::ANSWER_UNSPECIFIED
                                  ? ""
                                  : AnswerName(row.verdict->answer()))});
  return cells;
}

std::vector<NamedCell> CellsOf(const Row& row, const v1::Report& report,
                               OutputFormat format) {
  const bool narrow = format == OutputFormat::kTable && !format.wide;
  return narrow ? NarrowCells(row, report) : MakeCells(row, report, format);
}

}  // namespace

const v1::ShippingVerdict* MainVerdict(const v1::Job& job) {
  for (const v1::ShippingVerdict::Answer answer :
       {v1::ShippingVerdict::NO, v1::ShippingVerdict::UNCLEAR,
        v1::ShippingVerdict::YES}) {
    for (const v1::ShippingVerdict& verdict : job.verdicts()) {
      if (verdict.answer() == answer) return &verdict;
    }
  }
  return nullptr;
}

std::string VerdictLine(const v1::ShippingVerdict& verdict) {
  std::string line = verdict.variant();
  if (!verdict.device().empty()) {
    absl::StrAppend(&line, " on ", verdict.device());
    if (verdict.threads() > 0) {
      absl::StrAppend(&line, ", ", ThreadsText(verdict.threads()));
    }
  }
  return PrintableLine(absl::StrCat(line, ": ", verdict.text()));
}

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

Table MakeResultsTable(const v1::Job& job, OutputFormat format) {
  const v1::ShippingVerdict nothing;
  std::vector<Table::Column> columns;
  for (const NamedCell& named :
       CellsOf({.verdict = &nothing}, job.report(), format)) {
    columns.push_back(named.column);
  }
  Table table(std::move(columns));
  for (const Row& row : MakeRows(job)) {
    std::vector<Cell> cells;
    for (NamedCell& named : CellsOf(row, job.report(), format)) {
      cells.push_back(std::move(named.cell));
    }
    table.AddRow(std::move(cells));
  }
  return table;
}

}  // namespace optfarm::client_cli
