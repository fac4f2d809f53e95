#include "client_cli/tables/tune_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/human_units.h"
#include "client_cli/flags/flags.h"
#include "client_cli/tables/job_text.h"
#include "engine/tune/quality.h"

namespace optfarm::client_cli {
namespace {

std::string Interval(double value, double low, double high) {
  return absl::StrCat(HumanRatio(value), " (", HumanRatio(low), " to ",
                      HumanRatio(high), ")");
}

const v1::TunedVariant* FindVariant(const v1::TunedDevice& device,
                                    const std::string& name) {
  for (const v1::TunedVariant& variant : device.variants()) {
    if (variant.name() == name) return &variant;
  }
  return nullptr;
}

// The variant to ship, as it is to be run; null: there is none.
const v1::TunedVariant* ChosenOf(const v1::TunedDevice& device) {
  for (const v1::TunedVariant& variant : device.variants()) {
    if (variant.name() == device.recommended() &&
        variant.threads() == device.recommended_threads()) {
      return &variant;
    }
  }
  // Of a server that does not tell threads.
  return FindVariant(device, device.recommended());
}

bool HasSeveralThreadCounts(const v1::TunedDevice& device) {
  return std::any_of(device.variants().begin(), device.variants().end(),
                     [&](const v1::TunedVariant& variant) {
                       return variant.threads() != device.variants(0).threads();
                     });
}

std::string MarkOf(const v1::TunedVariant& variant,
                   const v1::TunedDevice& device) {
  if (&variant == ChosenOf(device)) return ">";
  return variant.dominated() ? " " : "*";
}

// Without the unit, which the heading tells.
Cell QualityCell(bool has, double value, v1::TuneReport::Measure measure) {
  if (!has) return Cell();
  const std::string text = tune::QualityText(value, measure);
  return Cell(value, text.substr(0, text.find(' ')));
}

std::string QualityHeading(v1::TuneReport::Measure measure) {
  switch (measure) {
    case v1::TuneReport::TOP1_CHANGE:
      return "TOP-1";
    case v1::TuneReport::AGREEMENT:
      return "AGREE %";
    default:
      return "SNR dB";
  }
}

std::string HeldOutText(const v1::TunedVariant& variant,
                        v1::TuneReport::Measure measure) {
  if (!variant.has_held_out_quality()) {
    return absl::StrCat(tune::QualityText(variant.quality(), measure),
                        " on the samples of the search");
  }
  std::string text = tune::QualityText(variant.held_out_quality(), measure);
  if (variant.has_held_out_low() && variant.has_held_out_high()) {
    absl::StrAppend(&text, " (",
                    tune::QualityText(variant.held_out_low(), measure), " to ",
                    tune::QualityText(variant.held_out_high(), measure), ")");
  }
  return absl::StrCat(text, " on ", variant.held_out_samples(),
                      " held-out samples");
}

// Beside what one would have taken without a search.
std::string AgainstInt8(const v1::TunedVariant& chosen,
                        const v1::TunedDevice& device,
                        const v1::TuneReport& report) {
  const v1::TunedVariant* usual = FindVariant(device, "int8");
  if (usual == nullptr || usual == &chosen || usual->latency_us() <= 0) {
    return "";
  }
  const double before = usual->has_held_out_quality()
                            ? usual->held_out_quality()
                            : usual->quality();
  const double now = chosen.has_held_out_quality() ? chosen.held_out_quality()
                                                   : chosen.quality();
  return absl::StrFormat(
      "Against recipe int8: %+.1f %% latency, %+.1f %% size, %s %s to %s.",
      100 * (chosen.latency_us() / usual->latency_us() - 1),
      100 *
          (static_cast<double>(chosen.file_bytes()) /
               static_cast<double>(std::max<int64_t>(usual->file_bytes(), 1)) -
           1),
      tune::MeasureTitle(report.measure()),
      tune::QualityText(before, report.measure()),
      tune::QualityText(now, report.measure()));
}

// What each step along the front costs and brings: "int8 to int8-float3-1a2b:
// +1.2 ms, +0.4 points, +3 KB (3 layers in float)".
std::string FrontText(const v1::TunedDevice& device,
                      const v1::TuneReport& report) {
  std::string text;
  const bool tells_threads = HasSeveralThreadCounts(device);
  const auto name = [&](const std::string& variant, int threads) {
    return tells_threads ? absl::StrCat(variant, " on ", threads,
                                        threads == 1 ? " thread" : " threads")
                         : variant;
  };
  for (const v1::FrontStep& step : device.front_steps()) {
    const std::string quality =
        tune::QualityText(step.quality(), report.measure());
    const bool has_sign = quality[0] == '+' || quality[0] == '-';
    std::string line = absl::StrCat(
        name(step.from(), step.from_threads()), " to ",
        name(step.to(), step.to_threads()), ": +",
        HumanMicroseconds(std::max(step.latency_us(), 0.0)), ", ",
        has_sign ? "" : "+", quality, ", ", step.file_bytes() < 0 ? "-" : "+",
        HumanBytes(std::abs(step.file_bytes())));
    if (!step.layers().empty()) {
      absl::StrAppend(&line, "; ", absl::StrJoin(step.layers(), ", "),
                      " in float");
    }
    absl::StrAppend(&text, WrapText(absl::StrCat(line, "."), 0));
  }
  return text;
}

// How much the search's own numbers flatter what it chose.
std::string OptimismText(const v1::TuneReport& report) {
  if (!report.has_optimism()) return "";
  const char* unit = report.measure() == v1::TuneReport::SNR ? "dB" : "points";
  return absl::StrFormat(
      "On the samples it chose by, the search saw %.1f %s %s than on held-out "
      "ones.\n",
      std::abs(report.optimism()), unit,
      report.optimism() >= 0 ? "more" : "less");
}

std::string CostText(const v1::TuneReport& report) {
  std::string text = absl::StrFormat(
      "Of %d variants considered, %d were judged and %d measured (%.1f %%); "
      "devices were busy for %s.",
      report.considered(), report.judged(), report.measured(),
      100.0 * report.measured() / std::max(report.considered(), 1),
      HumanDuration(absl::Seconds(report.device_seconds())));
  if (report.has_latency_error()) {
    absl::StrAppend(&text,
                    absl::StrFormat(" Predicted latencies were off by %.1f %% "
                                    "(median)",
                                    100 * report.latency_error()));
    if (report.has_latency_rank_correlation()) {
      absl::StrAppend(&text,
                      absl::StrFormat(", rank correlation %.2f",
                                      report.latency_rank_correlation()));
    }
    absl::StrAppend(&text, ".");
  }
  int known = 0, estimated = 0;
  for (const v1::TunedDevice& device : report.devices()) {
    known += device.known_steps();
    estimated += device.estimated_steps();
  }
  if (known + estimated > 0) {
    absl::StrAppend(
        &text, absl::StrFormat(" Of %d steps that they are made of, %d were "
                               "measured before, and %d estimated.",
                               known + estimated, known, estimated));
  }
  return absl::StrCat(WrapText(text, 0));
}

}  // namespace

std::string TuneVerdict(const v1::TunedDevice& device,
                        const v1::TuneReport& report) {
  const v1::TunedVariant* chosen = ChosenOf(device);
  if (chosen == nullptr) {
    return absl::StrCat("On ", device.device(), ": nothing keeps the bound of ",
                        tune::QualityText(report.bound(), report.measure()),
                        " in ", tune::MeasureTitle(report.measure()),
                        "; allow more, or give more calibration data.");
  }
  const std::string threads =
      HasSeveralThreadCounts(device)
          ? absl::StrCat(" on ", chosen->threads(),
                         chosen->threads() == 1 ? " thread" : " threads")
          : "";
  return absl::StrCat("On ", device.device(), ": ship ", chosen->name(),
                      threads, ": ", HumanMicroseconds(chosen->latency_us()),
                      ", ",
                      Interval(chosen->speedup(), chosen->speedup_low(),
                               chosen->speedup_high()),
                      " float's speed, ", HumanRatio(chosen->size_ratio()),
                      " size, ", HeldOutText(*chosen, report.measure()), ".");
}

Table MakeTuneTable(const v1::TunedDevice& device,
                    const v1::TuneReport& report) {
  using Align = Table::Align;
  Table table({{"mark", ""},
               {"variant", "VARIANT"},
               {"threads", "THR", Align::kRight, /*only_wide=*/true},
               {"latency_us", "LATENCY", Align::kRight},
               {"predicted_us", "PREDICTED", Align::kRight},
               {"speedup", "SPEED-UP (95 %)", Align::kRight},
               {"size_ratio", "SIZE", Align::kRight},
               {"quality", QualityHeading(report.measure()), Align::kRight},
               {"held_out_quality", "HELD OUT", Align::kRight}});
  for (const v1::TunedVariant& variant : device.variants()) {
    table.AddRow(
        {Cell(MarkOf(variant, device), MarkOf(variant, device)),
         Cell::Text(variant.name()), Cell::Integer(variant.threads()),
         Cell(variant.latency_us(), HumanMicroseconds(variant.latency_us())),
         variant.has_predicted_us()
             ? Cell(variant.predicted_us(),
                    HumanMicroseconds(variant.predicted_us()))
             : Cell(),
         Cell(variant.speedup(),
              absl::StrFormat("%.2fx (%.2f-%.2f)", variant.speedup(),
                              variant.speedup_low(), variant.speedup_high())),
         Cell(variant.size_ratio(), HumanRatio(variant.size_ratio())),
         QualityCell(true, variant.quality(), report.measure()),
         QualityCell(variant.has_held_out_quality(), variant.held_out_quality(),
                     report.measure())});
  }
  return table;
}

std::string TuneText(const v1::TuneReport& report, bool verbose) {
  std::string text;
  for (const v1::TunedDevice& device : report.devices()) {
    absl::StrAppend(&text, WrapText(TuneVerdict(device, report), 0));
  }
  if (!report.one_for_all().empty()) {
    absl::StrAppend(&text, "For all devices: ", report.one_for_all(),
                    ", at most ", HumanRatio(report.worst_regret()),
                    " of the best on any.\n");
  }
  for (const v1::TunedDevice& device : report.devices()) {
    absl::StrAppend(
        &text, "\n", device.device(), ", float ",
        HumanMicroseconds(device.float_us()), " on ", report.threads(),
        report.threads() == 1 ? " thread" : " threads",
        "; > ship, * on the front:\n",
        MakeTuneTable(device, report)
            .ToText(/*headings=*/true, HasSeveralThreadCounts(device)));
    absl::StrAppend(&text, FrontText(device, report));
    const v1::TunedVariant* chosen = ChosenOf(device);
    if (chosen != nullptr) {
      const std::string against = AgainstInt8(*chosen, device, report);
      if (!against.empty()) absl::StrAppend(&text, WrapText(against, 0));
    }
  }
  absl::StrAppend(&text, "\n", OptimismText(report), CostText(report));
  for (const std::string& warning : report.warnings()) {
    absl::StrAppend(&text, WrapText(absl::StrCat("Warning: ", warning), 0));
  }
  if (verbose) {
    for (const std::string& step : report.steps()) {
      absl::StrAppend(&text, WrapText(step, 0));
    }
  }
  return text;
}

std::string TuneStateName(v1::TuneState state) {
  return std::string(absl::StripPrefix(v1::TuneState_Name(state), "TUNE_"));
}

std::string TuneStateText(const v1::Tune& tune) {
  return absl::StrCat("tune ", tune.tune_id(), " ", TuneStateName(tune.state()),
                      tune.failure().empty() ? "" : ": ", tune.failure());
}

Table MakeTunesTable(const std::vector<v1::Tune>& tunes) {
  Table table({{"tune_id", "TUNE"},
               {"state", "STATE"},
               {"model", "MODEL"},
               {"devices", "DEVICES"},
               {"create_time", "CREATED (UTC)"},
               {"progress", "NOW"},
               {"ship", "SHIP"}});
  for (const v1::Tune& tune : tunes) {
    std::vector<std::string> ship;
    for (const v1::TunedDevice& device : tune.report().devices()) {
      if (device.recommended().empty()) continue;
      ship.push_back(
          absl::StrCat(device.recommended(), " on ", device.device()));
    }
    table.AddRow({Cell::Text(tune.tune_id()),
                  Cell::Text(TuneStateName(tune.state())),
                  Cell::Text(tune.report().model_name()),
                  Cell::Text(absl::StrJoin(tune.spec().devices(), ",")),
                  TimeCell(tune.create_time()), Cell::Text(tune.progress()),
                  Cell::Text(absl::StrJoin(ship, ", "))});
  }
  return table;
}

}  // namespace optfarm::client_cli
