// optctl list: jobs, newest first.

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/job_text.h"

namespace optfarm::client_cli {
namespace {

constexpr int64_t kMostInOnePage = 1000;
constexpr int kMostVerdicts = 200;

class List final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Choice("state", "Only jobs in this state.",
                  {"QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"},
                  &state_);
    flags->Text("recipe", "NAME", "Only jobs with this recipe.", &recipe_);
    flags->Text("model", "MODEL",
                "Only jobs with this model: SHA-256 (at least 6 digits), or a "
                "file name.",
                &model_);
    flags->Text("device", "NAME", "Only jobs that benchmark on this device.",
                &device_);
    flags->Text("name", "NAME", "Only jobs submitted with this --name.",
                &name_);
    flags->Integer("limit", "Maximum number of jobs. Default: 50.", &limit_, 1,
                   1'000'000);
    flags->Switch("watch",
                  "List again whenever something has changed, until Ctrl-C.",
                  &watch_);
    flags->Letter("w");
    flags->Duration("interval",
                    "With --watch, time from one look to the next. Default: "
                    "2s.",
                    &interval_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    if (watch_) return Watch(*client, context);
    OPTFARM_ASSIGN_OR_RETURN(const Listed listed, ReadJobs(*client));
    *context.out << TextOf(listed, context.format);
    if (listed.more) {
      *context.err << "There are more; --limit=N shows more than " << limit_
                   << ".\n";
    }
    return ExitCode::kOk;
  }

 private:
  struct Listed {
    std::vector<v1::Job> jobs;
    bool more = true;
  };

  absl::StatusOr<Listed> ReadJobs(FarmClient& client) const {
    v1::ListJobsRequest request;
    request.set_filter(Filter());
    Listed listed;
    while (listed.more && static_cast<int64_t>(listed.jobs.size()) < limit_) {
      request.set_page_size(static_cast<int32_t>(std::min<int64_t>(
          limit_ - static_cast<int64_t>(listed.jobs.size()), kMostInOnePage)));
      OPTFARM_ASSIGN_OR_RETURN(v1::ListJobsResponse response,
                               client.ListJobs(request));
      for (v1::Job& job : *response.mutable_jobs()) {
        listed.jobs.push_back(std::move(job));
      }
      request.set_page_token(response.next_page_token());
      listed.more =
          !response.next_page_token().empty() && response.jobs_size() > 0;
    }
    AddVerdicts(client, listed.jobs);
    return listed;
  }

  // A server that is older than verdicts in lists shows none.
  static void AddVerdicts(FarmClient& client, std::vector<v1::Job>& jobs) {
    for (size_t next = 0; next < jobs.size();) {
      v1::ListVerdictsRequest request;
      std::map<std::string, v1::Job*> asked;
      for (; next < jobs.size() && request.job_ids_size() < kMostVerdicts;
           ++next) {
        v1::Job& job = jobs[next];
        if (!job.has_end_time()) continue;
        request.add_job_ids(job.job_id());
        asked[job.job_id()] = &job;
      }
      if (asked.empty()) continue;
      absl::StatusOr<v1::ListVerdictsResponse> response =
          client.ListVerdicts(request);
      if (!response.ok()) return;
      for (v1::JobVerdicts& found : *response->mutable_jobs()) {
        const auto job = asked.find(found.job_id());
        if (job == asked.end()) continue;
        *job->second->mutable_verdicts() = std::move(*found.mutable_verdicts());
      }
    }
  }

  std::string TextOf(const Listed& listed, OutputFormat format) const {
    if (listed.jobs.empty() && format == OutputFormat::kTable) {
      return absl::StrCat("No jobs", Filter().empty() ? "" : " like that",
                          ".\n");
    }
    return MakeJobsTable(listed.jobs).ToFormat(format);
  }

  // Ends with an error of the server alone. A terminal shows the newest list,
  // anything else is sent each one.
  absl::StatusOr<ExitCode> Watch(FarmClient& client,
                                 const CommandContext& context) const {
    std::string shown;
    while (true) {
      OPTFARM_ASSIGN_OR_RETURN(const Listed listed, ReadJobs(client));
      std::string text = TextOf(listed, context.format);
      if (text != shown) {
        *context.out << (context.width > 0 ? "\x1b[H\x1b[J" : "") << text
                     << std::flush;
        shown = std::move(text);
      }
      context.clock->Sleep(interval_);
    }
  }

  std::string Filter() const {
    std::string filter;
    const auto add = [&filter](const char* key, const std::string& value) {
      if (value.empty()) return;
      absl::StrAppend(&filter, filter.empty() ? "" : " ", key, "=", value);
    };
    add("state", state_);
    add("recipe", recipe_);
    add("model", model_);
    add("device", device_);
    add("name", name_);
    return filter;
  }

  std::string state_, recipe_, model_, device_, name_;
  int64_t limit_ = 50;
  bool watch_ = false;
  absl::Duration interval_ = absl::Seconds(2);
};

}  // namespace

CommandInfo ListCommand() {
  return {
      "list", "List jobs, newest first.",
      "  optctl list --state=RUNNING\n  optctl list --model=9f86d081 -o csv",
      [] { return std::unique_ptr<Command>(new List); }};
}

}  // namespace optfarm::client_cli
