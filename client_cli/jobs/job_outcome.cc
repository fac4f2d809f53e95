#include "client_cli/jobs/job_outcome.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/human_units.h"
#include "client_cli/flags/flags.h"
#include "client_cli/tables/noise_text.h"
#include "client_cli/tables/proto_json.h"
#include "client_cli/tables/report_details.h"
#include "client_cli/tables/results_table.h"
#include "engine/verdict/job_verdicts.h"

namespace optfarm::client_cli {
namespace {

// Shown of a long list; -o json has all.
constexpr int kMostWarnings = 20;

std::string GateValue(const v1::GateResult& gate) {
  // Of a signal-to-noise ratio: there is no noise.
  if (std::isinf(gate.value()) && gate.value() > 0) return "equal";
  if (!std::isfinite(gate.value())) return "not known";
  return absl::StrFormat("%.4g", gate.value());
}

std::string GatesText(const v1::Job& job) {
  if (job.gates().empty()) return "";
  using Align = Table::Align;
  Table table({{"name", "GATE"},
               {"outcome", "OUTCOME"},
               {"value", "VALUE", Align::kRight},
               {"bound", "BOUND", Align::kRight}});
  std::string messages;
  for (const v1::GateResult& gate : job.gates()) {
    table.AddRow({Cell::Text(gate.name()),
                  Cell::Text(gate.passed() ? "passed" : "FAILED"),
                  Cell::Text(GateValue(gate)),
                  Cell::Text(absl::StrFormat("%.4g", gate.bound()))});
    if (!gate.passed() && !gate.message().empty()) {
      absl::StrAppend(&messages, WrapText(PrintableLine(gate.message()), 2));
    }
  }
  return absl::StrCat("\n", table.ToText(), messages);
}

std::string WarningsText(const v1::Report& report) {
  if (report.warnings().empty()) return "";
  std::string text = "\nWarnings:\n";
  for (int i = 0; i < report.warnings_size() && i < kMostWarnings; ++i) {
    absl::StrAppend(&text, WrapText(PrintableLine(report.warnings(i)), 2));
  }
  if (report.warnings_size() > kMostWarnings) {
    absl::StrAppend(&text, "  and ", report.warnings_size() - kMostWarnings,
                    " more (-o json shows all)\n");
  }
  return text;
}

std::string FedText(const v1::Report& report) {
  if (report.fed().empty()) return "";
  std::string text = "\nFed:\n";
  for (const std::string& fed : report.fed()) {
    absl::StrAppend(&text, WrapText(PrintableLine(fed), 2));
  }
  return text;
}

// What the model was frozen from.
std::string OriginText(const v1::Report& report) {
  if (!report.has_model_origin()) return "";
  const v1::ModelOrigin& origin = report.model_origin();
  std::string text =
      absl::StrCat("Frozen from ", origin.source(),
                   origin.checkpoint().empty() ? "" : " with checkpoint ",
                   origin.checkpoint(), ": ", origin.variables(),
                   origin.variables() == 1 ? " variable" : " variables");
  if (origin.tags_size() > 0) {
    absl::StrAppend(&text, ", tags ", absl::StrJoin(origin.tags(), ","));
  }
  if (!origin.signature().empty()) {
    absl::StrAppend(&text, ", signature ", origin.signature());
  }
  return absl::StrCat("\n", PrintableLine(text), ".\n");
}

std::string FailureWords(const v1::Job& job) {
  const v1::Failure& failure = job.failure();
  if (failure.message().empty()) return "";
  const bool farms_trouble =
      !job.job_id().empty() && failure.kind() == v1::Failure::INTERNAL;
  return absl::StrCat(": ", failure.message(),
                      farms_trouble
                          ? " (an internal error of the farm, not of the model)"
                          : "");
}

constexpr char kGreen[] = "\x1b[32m";
constexpr char kYellow[] = "\x1b[33m";
constexpr char kRed[] = "\x1b[31m";

std::string Colored(const std::string& text, const char* start, bool color) {
  return color ? absl::StrCat(start, text, "\x1b[0m") : text;
}

std::string StateText(const v1::Job& job, bool color) {
  return absl::StrCat(
      job.job_id().empty() ? "" : absl::StrCat("Job ", job.job_id(), ": "),
      Colored(v1::JobState_Name(job.state()),
              job.state() == v1::SUCCEEDED ? kGreen : kRed, color),
      PrintableLine(FailureWords(job)), "\n");
}

// "int8 on pi4, 4 threads: no: 1.58x slower than float here", and an empty
// line.
std::string HeadlineText(const v1::Job& job, bool color) {
  const v1::ShippingVerdict* verdict = MainVerdict(job);
  if (verdict == nullptr) return "";
  const char* start = verdict->answer() == v1::ShippingVerdict::YES  ? kGreen
                      : verdict->answer() == v1::ShippingVerdict::NO ? kRed
                                                                     : kYellow;
  return absl::StrCat(Colored(VerdictLine(*verdict), start, color), "\n\n");
}

// The verdicts' texts, which the narrow table has no room for. One alone is the
// headline.
std::string ReasonsText(const v1::Job& job) {
  std::string text;
  int count = 0;
  for (const v1::ShippingVerdict& verdict : job.verdicts()) {
    if (verdict.answer() == v1::ShippingVerdict::BASELINE) continue;
    absl::StrAppend(&text, WrapText(VerdictLine(verdict), 2));
    ++count;
  }
  return count > 1 ? absl::StrCat("\n", text) : "";
}

std::string GatesJson(const v1::Job& job) {
  return absl::StrJoin(job.gates(), ", ",
                       [](std::string* out, const v1::GateResult& gate) {
                         out->append(ProtoToJsonLine(gate));
                       });
}

std::string WarningsJson(const v1::Report& report) {
  return absl::StrJoin(report.warnings(), ", ",
                       [](std::string* out, const std::string& warning) {
                         out->append(JsonString(warning));
                       });
}

std::string Stripped(std::string text) {
  absl::StripTrailingAsciiWhitespace(&text);
  return text;
}

}  // namespace

JobOutcome OutcomeOf(v1::Job owned) {
  JobOutcome outcome;
  outcome.job = std::move(owned);
  verdict::AddVerdicts(outcome.job);
  const v1::Job& job = outcome.job;
  if (job.from_cache()) {
    outcome.remark = absl::StrCat(
        "The report was made by job ", job.cached_from_job_id(),
        " from the same model, recipe and data (--no_cache repeats the work).");
  }
  if (!job.artifacts().empty()) {
    outcome.where.push_back(absl::StrCat(
        "Files: ",
        absl::StrJoin(job.artifacts(), ", ",
                      [](std::string* out, const v1::Artifact& artifact) {
                        absl::StrAppend(
                            out, PrintableLine(artifact.name()), " (",
                            HumanBytes(artifact.digest().size_bytes()), ")");
                      })));
    outcome.where.push_back(absl::StrCat("Get them with: optctl download ",
                                         job.job_id(), " --out_dir=DIR"));
  }
  return outcome;
}

std::string OutcomeText(const JobOutcome& outcome, OutputFormat format,
                        bool color) {
  const v1::Job& job = outcome.job;
  const v1::Report& report = job.report();
  std::string text;
  if (job.has_report() || !job.measurements().empty()) {
    absl::StrAppend(&text, HeadlineText(job, color),
                    MakeResultsTable(job, format).ToText(format.headers),
                    format.wide ? "" : ReasonsText(job));
  }
  absl::StrAppend(&text, ReportDetails(report), GatesText(job),
                  OriginText(report), FedText(report),
                  NoiseText({job.measurements().data(),
                             static_cast<size_t>(job.measurements_size())}),
                  WarningsText(report));
  if (!text.empty()) absl::StrAppend(&text, "\n");
  if (!outcome.remark.empty()) absl::StrAppend(&text, outcome.remark, "\n");
  for (const std::string& line : outcome.where) {
    absl::StrAppend(&text, WrapText(line, 0));
  }
  return absl::StrCat(text, StateText(job, color));
}

std::string OutcomeJson(const JobOutcome& outcome) {
  const v1::Job& job = outcome.job;
  return absl::StrCat(
      "{\n\"job_id\": ", JsonString(job.job_id()),
      ",\n\"state\": ", JsonString(v1::JobState_Name(job.state())),
      ",\n\"failure\": ",
      job.has_failure() ? ProtoToJsonLine(job.failure()) : "null",
      ",\n\"rows\": ",
      Stripped(MakeResultsTable(job, OutputFormat::kJson).ToJson()),
      ",\n\"gates\": [", GatesJson(job), "],\n\"warnings\": [",
      WarningsJson(job.report()), "],\n\"report\": ",
      job.has_report() ? Stripped(ProtoToJson(job.report())) : "null", "\n}\n");
}

ExitCode ExitCodeOf(const v1::Job& job) {
  if (job.state() == v1::SUCCEEDED) return ExitCode::kOk;
  if (job.state() == v1::CANCELLED) return ExitCode::kJobFailed;
  if (job.failure().code() == "GATE_FAILED") return ExitCode::kGateMissed;
  return job.failure().kind() == v1::Failure::USER ? ExitCode::kBadModel
                                                   : ExitCode::kJobFailed;
}

ExitCode PrintOutcome(const JobOutcome& outcome,
                      const CommandContext& context) {
  switch (context.format) {
    case OutputFormat::kTable:
      *context.out << OutcomeText(outcome, context.format, context.color);
      break;
    case OutputFormat::kJson:
      *context.out << OutcomeJson(outcome);
      break;
    case OutputFormat::kCsv:
      *context.out << MakeResultsTable(outcome.job, OutputFormat::kCsv).ToCsv();
      // Rows have no place for it, and it must not pass unnoticed.
      if (!outcome.succeeded()) *context.err << StateText(outcome.job, false);
      break;
  }
  return ExitCodeOf(outcome.job);
}

}  // namespace optfarm::client_cli
