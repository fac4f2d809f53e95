#include "client_cli/tables/report_details.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/human_units.h"
#include "client_cli/flags/flags.h"
#include "client_cli/tables/table.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::client_cli {
namespace {

using Align = Table::Align;

// Shown of a long list; -o json has all.
constexpr size_t kMostLayers = 12;
constexpr int kMostSamples = 10;
// Of the first thing that keeps a runtime from running the result.
constexpr size_t kMostProblemBytes = 44;
// Beyond it nobody sees a difference, and a lone rounding makes hundreds.
constexpr double kMostDecibel = 99;

Cell Decibel(double snr) {
  if (std::isnan(snr)) return Cell();
  if (std::isinf(snr)) return Cell::Text(snr > 0 ? "equal" : "lost");
  if (snr > kMostDecibel) return Cell::Text("> 99 dB");
  return Cell::Text(absl::StrFormat("%.1f dB", snr));
}

Cell Milliseconds(double milliseconds) {
  return milliseconds > 0 ? Cell::Text(HumanMicroseconds(1000 * milliseconds))
                          : Cell();
}

// One that was tried alone has no price to compare.
std::string SearchText(const v1::Report& report) {
  if (report.search_size() < 2) return "";
  Table table({{"chain", "TRIED"},
               {"bytes", "SIZE", Align::kRight},
               {"milliseconds", "TIME", Align::kRight},
               {"agreement", "AGREEMENT", Align::kRight},
               {"snr_db", "SNR", Align::kRight},
               {"outcome", "OUTCOME"}});
  for (const v1::SearchStep& step : report.search()) {
    if (!step.broken().empty()) {
      table.AddRow({Cell::Text(step.description()), Cell(), Cell(), Cell(),
                    Cell(), Cell::Text("cannot be run")});
      continue;
    }
    table.AddRow({Cell::Text(step.description()),
                  Cell::Text(HumanBytes(step.bytes())),
                  Milliseconds(step.milliseconds()),
                  step.agreement() < 0
                      ? Cell()
                      : Cell::Text(HumanPercent(100 * step.agreement())),
                  Decibel(step.snr_db()),
                  Cell::Text(step.taken()           ? "taken"
                             : step.within_bounds() ? "within bounds"
                                                    : "misses a bound")});
  }
  return absl::StrCat("\n", table.ToText(),
                      "  on calibration samples, without labels; time on one "
                      "thread of the machine that optimized\n");
}

void AddInterval(const char* what, const v1::PairedAccuracy& paired,
                 std::string* text) {
  absl::StrAppend(
      text,
      WrapText(absl::StrFormat(
                   "%s: %+.2f points, 95 %% interval %+.2f to %+.2f, p = %.3g; "
                   "of %d samples %d lost, %d won",
                   what, paired.change(), paired.change_low(),
                   paired.change_high(), paired.p_value(), paired.samples(),
                   paired.only_float_right(), paired.only_optimized_right()),
               2));
}

std::string AccuracyText(const v1::Report& report) {
  if (!report.has_paired_accuracy()) return "";
  std::string text = "\nChange of accuracy on the same samples:\n";
  AddInterval("top-1", report.paired_accuracy(), &text);
  if (report.has_paired_top5()) {
    AddInterval("top-5", report.paired_top5(), &text);
  }
  return text;
}

std::string SizesText(const v1::Report& report) {
  const v1::GraphSize& before = report.size_before();
  const v1::GraphSize& after = report.size_after();
  if (before.gzip_bytes() == 0 || after.gzip_bytes() == 0) return "";
  Table table({{"size", "PACKED"},
               {"before", "BEFORE", Align::kRight},
               {"after", "AFTER", Align::kRight},
               {"ratio", "RATIO", Align::kRight}});
  const auto add = [&](const char* name, int64_t from, int64_t to) {
    if (from == 0 || to == 0) return;
    table.AddRow(
        {Cell::Text(name), Cell::Text(HumanBytes(from)),
         Cell::Text(HumanBytes(to)),
         Cell::Text(absl::StrFormat(
             "%.3f", static_cast<double>(to) / static_cast<double>(from)))});
  };
  add("not", before.file_bytes(), after.file_bytes());
  add("gzip", before.gzip_bytes(), after.gzip_bytes());
  add("zstd", before.zstd_bytes(), after.zstd_bytes());
  return absl::StrCat("\n", table.ToText());
}

// The most sensitive first.
std::string SensitivityText(const v1::Report& report) {
  if (report.sensitivity().empty()) return "";
  std::vector<const v1::LayerSensitivity*> layers;
  for (const v1::LayerSensitivity& layer : report.sensitivity()) {
    layers.push_back(&layer);
  }
  const auto loss = [](const v1::LayerSensitivity* layer) {
    return std::isnan(layer->output_snr_db()) ? 1e9 : layer->output_snr_db();
  };
  std::stable_sort(layers.begin(), layers.end(),
                   [&](auto* a, auto* b) { return loss(a) < loss(b); });
  Table table({{"layer", "LAYER"},
               {"op", "OP"},
               {"alone", "ALONE", Align::kRight},
               {"all", "WITH ALL", Align::kRight},
               {"output", "OUTPUT", Align::kRight},
               {"bytes", "IN FLOAT", Align::kRight},
               {"float_time", "FLOAT TIME", Align::kRight},
               {"time", "8-BIT TIME", Align::kRight}});
  for (size_t i = 0; i < std::min(layers.size(), kMostLayers); ++i) {
    const v1::LayerSensitivity& layer = *layers[i];
    table.AddRow(
        {Cell::Text(layer.name()), Cell::Text(layer.op()),
         Decibel(layer.alone_snr_db()), Decibel(layer.cumulative_snr_db()),
         Decibel(layer.output_snr_db()),
         Cell::Text(absl::StrCat("+", HumanBytes(layer.float_bytes_more()))),
         Milliseconds(layer.float_milliseconds()),
         Milliseconds(layer.result_milliseconds())});
  }
  std::string text = absl::StrCat("\n", table.ToText());
  if (layers.size() > kMostLayers) {
    absl::StrAppend(&text, "  and ", layers.size() - kMostLayers,
                    " more (-o json shows all)\n");
  }
  return text;
}

// What a detector finds, before and after.
std::string DetectionsText(const v1::Report& report) {
  if (!report.has_detections()) return "";
  const v1::DetectionComparison& d = report.detections();
  return absl::StrFormat(
      "\nDetections with a score of at least 0.5 in %d samples: %d of float's "
      "%d are found (mean IoU %.3f, scores change by %.3f), %d of the result's "
      "%d are new.\n",
      d.samples(), d.found(), d.float_detections(), d.mean_iou(),
      d.mean_score_change(), d.extra(), d.optimized_detections());
}

std::string SamplesText(const v1::Report& report) {
  if (report.worst_samples().empty()) return "";
  const bool is_named = absl::c_any_of(
      report.worst_samples(),
      [](const auto& sample) { return !sample.float_class_name().empty(); });
  const Align align = is_named ? Align::kLeft : Align::kRight;
  Table table({{"sample", "WORST SAMPLE", Align::kLeft, false, 22},
               {"snr", "SNR", Align::kRight},
               {"float_class", "FLOAT", align, false, 14},
               {"class", "RESULT", align, false, 14},
               {"label", "LABEL", align, false, 14}});
  const auto cell = [](int64_t number, const std::string& name) {
    if (number < 0) return Cell();
    return name.empty() ? Cell::Integer(number) : Cell::Text(name);
  };
  for (int i = 0; i < std::min(report.worst_samples_size(), kMostSamples);
       ++i) {
    const v1::SampleComparison& sample = report.worst_samples(i);
    table.AddRow({Cell::Text(sample.sample()), Decibel(sample.snr_db()),
                  cell(sample.float_class(), sample.float_class_name()),
                  cell(sample.optimized_class(), sample.optimized_class_name()),
                  cell(sample.label(), sample.label_name())});
  }
  return absl::StrCat("\n", table.ToText(/*headings=*/true, /*wide=*/false));
}

// Where most of a layer's values lie; the picture has the rest.
std::string HistogramsText(const v1::Report& report) {
  if (report.histograms().empty()) return "";
  std::string text = "\nDistributions (histograms.svg has them as pictures):\n";
  for (const v1::LayerHistogram& layer : report.histograms()) {
    const double high = layer.low() + layer.width() * layer.original_size();
    absl::StrAppendFormat(&text, "  %s (%s): %.4g to %.4g\n", layer.name(),
                          layer.op(), layer.low(), high);
    if (layer.result().empty()) {
      absl::StrAppend(&text, "    the result does not have it\n");
    }
  }
  return text;
}

// `text` in at most `most` bytes, which are cut between characters.
std::string Shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most - 3;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

Cell EmptyCell() { return Cell(std::string(), ""); }

std::string RuntimesText(const v1::Report& report) {
  if (report.runtimes().empty()) return "";
  Table table({{"runtime", "RUNTIME"},
               {"file", "FILE"},
               {"runs", "RUNS"},
               {"problem", "OTHERWISE"}});
  for (const v1::RuntimeSupport& runtime : report.runtimes()) {
    const std::string problem =
        runtime.problems().empty()
            ? ""
            : Shortened(runtime.problems(0), kMostProblemBytes);
    const std::string recipe =
        runtime.recipe().empty()
            ? ""
            : absl::StrCat("take recipe ", runtime.recipe());
    table.AddRow({Cell::Text(runtime.title()),
                  Cell::Text(absl::StrCat(".", runtime.file_format())),
                  Cell::Text(runtime.runs() ? "yes" : "no"),
                  runtime.runs()
                      ? EmptyCell()
                      : Cell::Text(recipe.empty() ? problem : recipe)});
    if (!recipe.empty() && !problem.empty()) {
      table.AddRow(
          {EmptyCell(), EmptyCell(), EmptyCell(), Cell::Text(problem)});
    }
  }
  return absl::StrCat("\n", table.ToText());
}

// The formats that the job asked for: the file, or all reasons why there is
// none.
std::string FormatsText(const v1::Report& report) {
  if (report.exports().empty()) return "";
  std::string text = "\nFormats:\n";
  for (const v1::ExportedModel& made : report.exports()) {
    if (!made.artifact().empty()) {
      absl::StrAppend(&text,
                      WrapText(PrintableLine(absl::StrCat(made.artifact(), ": ",
                                                          made.summary())),
                               2));
      continue;
    }
    absl::StrAppend(&text, "  not ",
                    absl::AsciiStrToLower(v1::ModelFormat_Name(made.format())),
                    ", which cannot hold the result:\n");
    for (const std::string& problem : made.problems()) {
      absl::StrAppend(&text, WrapText(PrintableLine(problem), 4));
    }
  }
  return text;
}

}  // namespace

std::string ReportDetails(const v1::Report& report) {
  return absl::StrCat(
      SearchText(report), SensitivityText(report), HistogramsText(report),
      AccuracyText(report), SizesText(report), RuntimesText(report),
      FormatsText(report), DetectionsText(report), SamplesText(report));
}

}  // namespace optfarm::client_cli
