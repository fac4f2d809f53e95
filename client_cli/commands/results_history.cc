// optctl results history: how measurements went over time.

#include <google/protobuf/arena.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/human_units.h"
#include "base/number_text.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/result_filter_flags.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/row_writer.h"
#include "client_cli/tables/trend_chart.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

constexpr size_t kSparklineWidth = 40;
// In 80 columns, beside the others.
constexpr size_t kNarrowSparkline = 16;

bool IsBytes(v1::Metric metric) {
  return metric == v1::PEAK_MEMORY_BYTES || metric == v1::FILE_SIZE_BYTES;
}

Cell MetricCell(double value, v1::Metric metric) {
  return Cell(value, IsBytes(metric) ? HumanBytes(static_cast<int64_t>(value))
                                     : HumanMicroseconds(value));
}

std::vector<double> ValuesOf(const v1::SeriesHistory& history,
                             v1::Metric metric) {
  std::vector<double> values;
  for (const v1::SeriesPoint& point : history.points()) {
    values.push_back(ValueOf(point, metric));
  }
  return values;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half]
                                : (values[half - 1] + values[half]) / 2;
}

// One row a series, with its trend drawn.
Table TrendTable(const v1::ListHistoryResponse& response,
                 const std::string& metric_name, bool wide) {
  using Align = Table::Align;
  const v1::Metric metric = MetricOf(metric_name);
  Table table({{"device", "DEVICE", Align::kLeft, false, 10},
               {"model", "MODEL", Align::kLeft, false, 14},
               {"recipe", "RECIPE", Align::kLeft, true},
               {"variant", "VARIANT", Align::kLeft, false, 10},
               {"threads", "THR", Align::kRight},
               {"points", "POINTS", Align::kRight, true},
               {"newest", "NEWEST", Align::kRight},
               {"before", "BEFORE", Align::kRight},
               {"change_percent", "CHANGE", Align::kRight},
               {"trend", "TREND"}});
  for (const v1::SeriesHistory& history : response.series()) {
    const v1::Series& series = history.series();
    std::vector<double> values = ValuesOf(history, metric);
    const std::string trend =
        Sparkline(values, wide ? kSparklineWidth : kNarrowSparkline);
    const double newest = values.back();
    values.pop_back();
    Cell before;
    Cell change;
    if (!values.empty()) {
      const double median = Median(values);
      before = MetricCell(median, metric);
      if (median > 0) {
        const double percent = 100 * (newest / median - 1);
        change = Cell(percent, absl::StrFormat("%+.1f%%", percent));
      }
    }
    table.AddRow(
        {Cell::Text(series.device()), Cell::Text(series.model_name()),
         Cell::Text(series.recipe_name()), Cell::Text(series.variant()),
         Cell::Integer(series.threads()), Cell::Integer(history.points_size()),
         MetricCell(newest, metric), before, change, Cell::Text(trend)});
  }
  return table;
}

// One row a point.
void PrintPoints(const v1::ListHistoryResponse& response, OutputFormat format,
                 std::ostream& out) {
  RowWriter rows({"device", "model", "recipe", "variant", "threads",
                  "result_id", "create_time", "median_us", "p90_us",
                  "peak_memory_bytes", "file_size_bytes", "noisy",
                  "measured_sha256", "build_version", "job_id"},
                 format);
  std::string time;
  for (const v1::SeriesHistory& history : response.series()) {
    const v1::Series& series = history.series();
    for (const v1::SeriesPoint& point : history.points()) {
      time.clear();
      AppendUtcTime(rpc::FromTimestamp(point.create_time()), time);
      time.append("+00:00");
      rows.Text(series.device());
      rows.Text(series.model_name());
      rows.Text(series.recipe_name());
      rows.Text(series.variant());
      rows.Integer(series.threads());
      rows.Integer(point.result_id());
      rows.Text(time);
      rows.Number(point.median_us());
      rows.Number(point.p90_us());
      rows.Integer(point.peak_memory_bytes());
      rows.Integer(point.file_size_bytes());
      rows.Bool(point.noisy());
      rows.Text(point.measured_sha256());
      rows.Text(point.build_version());
      rows.Text(point.job_id());
    }
    rows.MoveTo(out);
  }
  out << std::move(rows).Finish();
}

std::string Chart(const v1::ListHistoryResponse& response,
                  const std::string& metric_name) {
  const v1::Metric metric = MetricOf(metric_name);
  std::vector<TrendLine> lines;
  for (const v1::SeriesHistory& history : response.series()) {
    const v1::Series& series = history.series();
    TrendLine& line = lines.emplace_back();
    line.label = absl::StrCat(series.device(), "  ", series.model_name(), "  ",
                              series.variant(), "  ", series.threads(),
                              series.threads() == 1 ? " thread" : " threads");
    for (const v1::SeriesPoint& point : history.points()) {
      line.points.push_back({rpc::FromTimestamp(point.create_time()),
                             ValueOf(point, metric), point.noisy()});
    }
  }
  return IsBytes(metric) ? TrendSvg(lines, metric_name + ", MB", 1e6)
                         : TrendSvg(lines, metric_name + ", ms", 1e3);
}

class ResultsHistory final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    filter_.Declare(flags);
    flags->Choice("metric", "Metric to show. Default: median_us.",
                  MetricNames(), &metric_);
    flags->Integer("points",
                   "Number of newest points of each series. Default: 100.",
                   &points_, 1, 1000);
    flags->Integer("series",
                   "Maximum number of series, most recently measured first. "
                   "Default: 20.",
                   &series_, 1, 100);
    flags->Path("svg", "FILE", "Also write a chart to this file.", &svg_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_RETURN_IF_ERROR(filter_.CompleteJob(*client));
    v1::ListHistoryRequest request;
    OPTFARM_ASSIGN_OR_RETURN(*request.mutable_filter(),
                             filter_.Build(context.clock->Now()));
    request.set_max_points(static_cast<int32_t>(points_));
    request.set_max_series(static_cast<int32_t>(series_));
    google::protobuf::Arena arena;
    auto& response =
        *google::protobuf::Arena::CreateMessage<v1::ListHistoryResponse>(
            &arena);
    OPTFARM_RETURN_IF_ERROR(client->ListHistory(request, &response));
    if (response.series().empty()) {
      OPTFARM_RETURN_IF_ERROR(filter_.CheckNames(*client));
    }
    if (!svg_.empty()) {
      OPTFARM_RETURN_IF_ERROR(
          WriteFileAtomically(svg_, Chart(response, metric_)));
    }
    if (context.format != OutputFormat::kTable) {
      PrintPoints(response, context.format, *context.out);
    } else if (response.series().empty()) {
      *context.out << "No results match.\n";
    } else {
      *context.out << TrendTable(response, metric_, context.format.wide)
                          .ToFormat(context.format);
    }
    if (response.more_series()) {
      *context.err << "There are more series; --series=N shows more than "
                   << series_ << ", --device and --model select.\n";
    }
    return ExitCode::kOk;
  }

 private:
  ResultFilterFlags filter_;
  std::string metric_ = "median_us";
  int64_t points_ = 100;
  int64_t series_ = 20;
  std::string svg_;
};

}  // namespace

CommandInfo ResultsHistoryCommand() {
  return {"results history",
          "Show how measurements of a model changed over time.",
          "  optctl results history --model=net.pb --device=pi4 "
          "--svg=trend.svg\n"
          "A series is a model's file name, recipe, device, variant and thread "
          "count. BEFORE is the median of all points but the newest. -o csv "
          "and -o json print every point.",
          [] { return std::unique_ptr<Command>(new ResultsHistory); }};
}

}  // namespace optfarm::client_cli
