// optctl results regressions: series whose newest point is worse than before.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/result_filter_flags.h"
#include "client_cli/commands/commands.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

v1::RegressionRule::Kind KindOf(const std::string& name) {
  if (name == "past-p90s") return v1::RegressionRule::PAST_P90S;
  if (name == "ratio") return v1::RegressionRule::RATIO;
  if (name == "deviations") return v1::RegressionRule::DEVIATIONS;
  return v1::RegressionRule::CHANGE;
}

Table RegressionTable(const v1::FindRegressionsResponse& response) {
  using Align = Table::Align;
  Table table({{"device", "DEVICE"},
               {"model", "MODEL"},
               {"recipe", "RECIPE"},
               {"variant", "VARIANT"},
               {"threads", "THREADS", Align::kRight},
               {"result_id", "RESULT", Align::kRight},
               {"create_time", "TAKEN (UTC)"},
               {"change_percent", "CHANGE", Align::kRight},
               {"past_points", "PAST", Align::kRight},
               {"message", "WHY"}});
  for (const v1::Regression& regression : response.regressions()) {
    const v1::Series& series = regression.series();
    const absl::Time taken =
        rpc::FromTimestamp(regression.newest().create_time());
    const double percent = 100 * (regression.ratio() - 1);
    table.AddRow(
        {Cell::Text(series.device()), Cell::Text(series.model_name()),
         Cell::Text(series.recipe_name()), Cell::Text(series.variant()),
         Cell::Integer(series.threads()),
         Cell::Integer(regression.newest().result_id()),
         Cell(absl::FormatTime(absl::RFC3339_sec, taken, absl::UTCTimeZone()),
              HumanTime(taken)),
         regression.ratio() > 0
             ? Cell(percent, absl::StrFormat("%+.1f%%", percent))
             : Cell(),
         Cell::Integer(regression.past_points()),
         Cell::Text(regression.message())});
  }
  return table;
}

class ResultsRegressions final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    filter_.Declare(flags);
    flags->Choice("rule",
                  "change: above what the past values predict, with a share "
                  "of --bound of unchanged series reported. "
                  "past-p90s: above the p90 of the past p90s plus a tenth of "
                  "their range. ratio: above --bound times the past median. "
                  "deviations: above the past median by --bound scaled median "
                  "absolute deviations. Default: change.",
                  {"change", "past-p90s", "ratio", "deviations"}, &rule_);
    flags->Number(
        "bound",
        "For the rules change (default 0.01), ratio (default 1.1) and "
        "deviations (default 5).",
        &bound_);
    flags->Choice("metric", "Metric to judge. Default: median_us.",
                  MetricNames(), &metric_);
    flags->Integer("min_points",
                   "Minimum number of points of a series. Default: 5.",
                   &min_points_, 2, 100);
    flags->Integer("window", "Number of newest points to look at. Default: 20.",
                   &window_, 2, 100);
    flags->Switch("skip_noisy", "Ignore noisy points.", &skip_noisy_);
    flags->Integer("limit",
                   "Maximum number of regressions, worst first. Default: 100.",
                   &limit_, 1, 1000);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_RETURN_IF_ERROR(filter_.CompleteJob(*client));
    v1::FindRegressionsRequest request;
    OPTFARM_ASSIGN_OR_RETURN(*request.mutable_filter(),
                             filter_.Build(context.clock->Now()));
    FillRule(request.mutable_rule());
    request.set_limit(static_cast<int32_t>(limit_));
    OPTFARM_ASSIGN_OR_RETURN(const v1::FindRegressionsResponse response,
                             client->FindRegressions(request));
    if (response.judged() == 0 && response.too_few_points() == 0) {
      OPTFARM_RETURN_IF_ERROR(filter_.CheckNames(*client));
    }
    if (!response.regressions().empty() ||
        context.format != OutputFormat::kTable) {
      *context.out << RegressionTable(response).ToFormat(context.format);
    }
    *context.err << response.found() << " of " << response.judged()
                 << " series are worse than before; "
                 << response.too_few_points() << " have too few points.\n";
    return response.found() > 0 ? ExitCode::kJobFailed : ExitCode::kOk;
  }

 private:
  void FillRule(v1::RegressionRule* rule) const {
    rule->set_kind(KindOf(rule_));
    rule->set_limit(bound_.value_or(0));
    rule->set_min_points(static_cast<int32_t>(min_points_));
    rule->set_window(static_cast<int32_t>(window_));
    rule->set_metric(MetricOf(metric_));
    rule->set_skip_noisy(skip_noisy_);
  }

  ResultFilterFlags filter_;
  std::string rule_ = "change";
  std::optional<double> bound_;
  std::string metric_ = "median_us";
  int64_t min_points_ = 0;
  int64_t window_ = 0;
  int64_t limit_ = 100;
  bool skip_noisy_ = false;
};

}  // namespace

CommandInfo ResultsRegressionsCommand() {
  return {"results regressions",
          "Find what became slower or larger; exit with 1 if anything did.",
          "  optctl results regressions --model=net.pb --rule=ratio "
          "--bound=1.05\n"
          "The exit code is 1 if the newest point of a series is worse than "
          "the rule allows, so a pipeline can stop there.",
          [] { return std::unique_ptr<Command>(new ResultsRegressions); }};
}

}  // namespace optfarm::client_cli
