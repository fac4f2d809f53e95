// optctl compare: the measurements of two jobs or two models side by side.

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/job_ids.h"
#include "client_cli/commands/commands.h"

namespace optfarm::client_cli {
namespace {

std::string Difference(const v1::CompareResultsResponse::Row& row) {
  if (row.speedup() <= 0) return row.has_a() ? "only A" : "only B";
  if (!row.significant()) return "within the noise";
  return row.speedup() >= 1
             ? absl::StrCat("B ", HumanRatio(row.speedup()), " faster")
             : absl::StrCat("B ", HumanRatio(1 / row.speedup()), " slower");
}

Cell MedianCell(bool present, const v1::Result& result) {
  if (!present) return Cell();
  const double median = result.measurement().median_us();
  return Cell(median, HumanMicroseconds(median));
}

// "1.80x (1.76x to 1.84x)".
std::string WithInterval(double value, double low, double high) {
  if (low <= 0) return HumanRatio(value);
  return absl::StrCat(HumanRatio(value), " (", HumanRatio(low), " to ",
                      HumanRatio(high), ")");
}

Cell SpeedupCell(const v1::CompareResultsResponse::Row& row) {
  if (row.speedup() <= 0) return Cell();
  return Cell(row.speedup(), WithInterval(row.speedup(), row.speedup_low(),
                                          row.speedup_high()));
}

Cell RatioCell(double ratio) {
  return ratio > 0 ? Cell(ratio, HumanRatio(ratio)) : Cell();
}

Table MakeComparisonTable(const v1::CompareResultsResponse& response,
                          OutputFormat format) {
  using Align = Table::Align;
  const bool for_people = format == OutputFormat::kTable;
  std::vector<Table::Column> columns = {
      {"device", "DEVICE", Align::kLeft, false, 10},
      {"variant", "VARIANT", Align::kLeft, false, 8},
      {"threads", "THR", Align::kRight},
      {"a_median_us", "A", Align::kRight},
      {"b_median_us", "B", Align::kRight},
      {"speedup", "A/B (95 %)", Align::kRight},
      {"memory_ratio", "MEMORY B/A", Align::kRight, true},
      {"file_size_ratio", "SIZE B/A", Align::kRight, true},
      {.name = "significant", .title = "DIFFERENCE", .folds = true}};
  if (!for_people) {
    columns.push_back({"speedup_low", "", Align::kRight});
    columns.push_back({"speedup_high", "", Align::kRight});
    columns.push_back({"run_to_run_spread", "", Align::kRight});
    columns.push_back({"spread_results", "", Align::kRight});
  }
  Table table(std::move(columns));
  for (const v1::CompareResultsResponse::Row& row : response.rows()) {
    std::vector<Cell> cells = {Cell::Text(row.device()),
                               Cell::Text(row.variant()),
                               Cell::Integer(row.threads()),
                               MedianCell(row.has_a(), row.a()),
                               MedianCell(row.has_b(), row.b()),
                               SpeedupCell(row),
                               RatioCell(row.memory_ratio()),
                               RatioCell(row.file_size_ratio()),
                               Cell(row.significant(), Difference(row))};
    if (!for_people) {
      cells.push_back(RatioCell(row.speedup_low()));
      cells.push_back(RatioCell(row.speedup_high()));
      const bool paired = row.speedup() > 0;
      cells.push_back(paired ? Cell(row.run_to_run_spread(), "") : Cell());
      cells.push_back(paired ? Cell::Integer(row.spread_results()) : Cell());
    }
    table.AddRow(std::move(cells));
  }
  return table;
}

// Where the spread between measurements could only be assumed.
std::string SpreadText(const v1::CompareResultsResponse& response) {
  int assumed = 0;
  double spread = 0;
  for (const v1::CompareResultsResponse::Row& row : response.rows()) {
    if (row.speedup() <= 0 || row.spread_results() > 0) continue;
    ++assumed;
    spread = row.run_to_run_spread();
  }
  if (assumed == 0 || spread <= 0) return "";
  return absl::StrCat(
      "Too few earlier results to know how much measurements vary:\n  ",
      HumanPercent(100 * spread), " assumed in ", assumed,
      assumed == 1 ? " row.\n" : " rows.\n");
}

class Compare final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument(
        "A",
        "A job's id, the beginning of one, latest, or the SHA-256 of "
        "a model.",
        &a_);
    flags->Argument("B", "What to compare it with.", &b_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    v1::CompareResultsRequest request;
    OPTFARM_RETURN_IF_ERROR(SetSide(*client, a_, request.mutable_a()));
    OPTFARM_RETURN_IF_ERROR(SetSide(*client, b_, request.mutable_b()));
    OPTFARM_ASSIGN_OR_RETURN(v1::CompareResultsResponse response,
                             client->CompareResults(request));
    if (response.rows().empty() && context.format == OutputFormat::kTable) {
      *context.out << "Neither side has measurements.\n";
      return ExitCode::kOk;
    }
    *context.out << MakeComparisonTable(response, context.format)
                        .ToFormat(context.format);
    if (context.format == OutputFormat::kTable) {
      *context.out << SpreadText(response);
    }
    if (response.pairs() > 1 && context.format == OutputFormat::kTable) {
      *context.out << "Over " << response.pairs() << " pairs A/B is "
                   << WithInterval(response.mean_speedup(),
                                   response.mean_speedup_low(),
                                   response.mean_speedup_high())
                   << " on geometric average.\n";
    }
    return ExitCode::kOk;
  }

 private:
  static absl::Status SetSide(FarmClient& client, const std::string& text,
                              v1::CompareResultsRequest::Side* side) {
    if (IsSha256Hex(text)) {
      side->set_model_sha256(text);
      return absl::OkStatus();
    }
    OPTFARM_ASSIGN_OR_RETURN(*side->mutable_job_id(), FindJobId(client, text));
    return absl::OkStatus();
  }

  std::string a_, b_;
};

}  // namespace

CommandInfo CompareCommand() {
  return {"compare", "Compare the measurements of two jobs or models.",
          "A/B is the ratio of the median latencies with its 95 % interval: "
          "above 1, B is faster. Measurements are paired by device, variant "
          "and thread count. The interval contains the spread from one "
          "measurement to the next, by earlier results of both sides or of "
          "the device; 3 % is assumed where there are too few. A difference "
          "counts as noise if the interval contains 1, or if a run was noisy.",
          [] { return std::unique_ptr<Command>(new Compare); }};
}

}  // namespace optfarm::client_cli
