// optctl results: measurements, newest first.

#include <google/protobuf/arena.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/result_filter_flags.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/proto_json.h"
#include "client_cli/tables/results_table.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

constexpr int64_t kMostInOnePage = 1000;

// `narrow`: what fits into 80 columns, with noisy medians marked.
Table MakeMeasurementsTable(const std::vector<const v1::Result*>& results,
                            bool narrow) {
  using Align = Table::Align;
  constexpr Align kLeft = Align::kLeft;
  Table table({{"result_id", "RESULT", Align::kRight, true},
               {"job_id", "JOB"},
               {"model", "MODEL", kLeft, false, 14},
               {"recipe", "RECIPE", kLeft, true},
               {"variant", "VARIANT", kLeft, false, 8},
               {"device", "DEVICE", kLeft, false, 9},
               {"processor", "PROCESSOR", kLeft, true},
               {"threads", narrow ? "THR" : "THREADS", Align::kRight},
               {"file_size_bytes", "SIZE", Align::kRight, true},
               {"first_us", "FIRST", Align::kRight, true},
               {"median_us", "MEDIAN", Align::kRight},
               {"mad_us", "SPREAD", Align::kRight, true},
               {"p90_us", "P90", Align::kRight, true},
               {"peak_memory_bytes", "MEMORY", Align::kRight, true},
               {"noisy", "NOISY", kLeft, true},
               {"create_time", "TAKEN (UTC)"}});
  const auto time_cell = [](double us) {
    return Cell(us, HumanMicroseconds(us));
  };
  const auto bytes_cell = [](int64_t bytes) {
    return bytes > 0 ? Cell(bytes, HumanBytes(bytes)) : Cell();
  };
  for (const v1::Result* result : results) {
    const v1::Measurement& m = result->measurement();
    const absl::Time taken = rpc::FromTimestamp(result->create_time());
    table.AddRow(
        {Cell::Integer(result->result_id()), Cell::Text(result->job_id()),
         Cell::Text(result->source_model().name()),
         Cell::Text(result->recipe_name()), Cell::Text(m.variant()),
         Cell::Text(m.device()),
         Cell(m.before().cpu_model(),
              ShortProcessorName(m.before().cpu_model())),
         Cell::Integer(m.threads()), bytes_cell(m.file_size_bytes()),
         time_cell(m.first_us()),
         Cell(m.median_us(), absl::StrCat(narrow && m.noisy() ? "~" : "",
                                          HumanMicroseconds(m.median_us()))),
         time_cell(m.mad_us()), time_cell(m.p90_us()),
         bytes_cell(m.peak_memory_bytes()),
         Cell(m.noisy(), m.noisy() ? "noisy" : "no"),
         Cell(absl::FormatTime(absl::RFC3339_sec, taken, absl::UTCTimeZone()),
              narrow
                  ? absl::FormatTime("%m-%d %H:%M", taken, absl::UTCTimeZone())
                  : HumanTime(taken))});
  }
  return table;
}

class Results final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    filter_.Declare(flags);
    flags->Integer("id", "Only the result with this id.", &id_, 1);
    flags->Integer("limit", "Maximum number of results. Default: 100.", &limit_,
                   1, 1'000'000);
    flags->Switch("full",
                  "With -o json: also print every run, and the times of each "
                  "op and node.",
                  &full_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_RETURN_IF_ERROR(filter_.CompleteJob(*client));
    OPTFARM_ASSIGN_OR_RETURN(v1::QueryResultsRequest request,
                             Request(context.clock->Now()));
    google::protobuf::Arena arena;
    std::vector<const v1::Result*> results;
    bool more = true;
    while (more && static_cast<int64_t>(results.size()) < limit_) {
      request.set_page_size(static_cast<int32_t>(std::min<int64_t>(
          limit_ - static_cast<int64_t>(results.size()), kMostInOnePage)));
      auto& response =
          *google::protobuf::Arena::CreateMessage<v1::QueryResultsResponse>(
              &arena);
      OPTFARM_RETURN_IF_ERROR(client->QueryResults(request, &response));
      for (const v1::Result& result : response.results()) {
        results.push_back(&result);
      }
      request.set_page_token(response.next_page_token());
      more = !response.next_page_token().empty() && response.results_size() > 0;
    }
    if (results.empty()) OPTFARM_RETURN_IF_ERROR(filter_.CheckNames(*client));
    Print(results, context);
    if (more) {
      *context.err << "There are more; --limit=N shows more than " << limit_
                   << ".\n";
    }
    return ExitCode::kOk;
  }

 private:
  absl::StatusOr<v1::QueryResultsRequest> Request(absl::Time now) const {
    OPTFARM_ASSIGN_OR_RETURN(const v1::ResultFilter filter, filter_.Build(now));
    v1::QueryResultsRequest request;
    request.set_model(filter.model());
    request.set_recipe_name(filter.recipe_name());
    request.set_device(filter.device());
    request.set_job_id(filter.job_id());
    request.set_variant(filter.variant());
    request.set_threads(filter.threads());
    request.set_tag(filter.tag());
    *request.mutable_metrics() = filter.metrics();
    if (filter.has_from_time()) {
      *request.mutable_from_time() = filter.from_time();
    }
    if (filter.has_until_time()) {
      *request.mutable_until_time() = filter.until_time();
    }
    request.set_result_id(id_);
    request.set_full(full_);
    return request;
  }

  static void Print(const std::vector<const v1::Result*>& results,
                    const CommandContext& context) {
    if (context.format == OutputFormat::kJson) {
      *context.out << "[";
      for (size_t i = 0; i < results.size(); ++i) {
        *context.out << (i > 0 ? ",\n" : "") << ProtoToJsonLine(*results[i]);
      }
      *context.out << "]\n";
      return;
    }
    if (results.empty() && context.format == OutputFormat::kTable) {
      *context.out << "No results match.\n";
      return;
    }
    const bool narrow =
        context.format == OutputFormat::kTable && !context.format.wide;
    *context.out
        << MakeMeasurementsTable(results, narrow).ToFormat(context.format);
    const bool any_noisy = std::any_of(
        results.begin(), results.end(),
        [](const auto* result) { return result->measurement().noisy(); });
    if (narrow && any_noisy) {
      *context.out << "~: disturbed while it was measured; -o wide shows the "
                      "spread.\n";
    }
  }

  ResultFilterFlags filter_;
  int64_t id_ = 0;
  int64_t limit_ = 100;
  bool full_ = false;
};

}  // namespace

CommandInfo ResultsCommand() {
  return {"results", "Query measurements, newest first.",
          "  optctl results --device=pi4 --variant=int8 --since=720h -o csv\n"
          "-o json prints each result with its environment.",
          [] { return std::unique_ptr<Command>(new Results); }};
}

}  // namespace optfarm::client_cli
