// optctl list: jobs, newest first.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/job_text.h"

namespace optfarm::client_cli {
namespace {

constexpr int64_t kMostInOnePage = 1000;

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
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    v1::ListJobsRequest request;
    request.set_filter(Filter());
    std::vector<v1::Job> jobs;
    bool more = true;
    while (more && static_cast<int64_t>(jobs.size()) < limit_) {
      request.set_page_size(static_cast<int32_t>(std::min<int64_t>(
          limit_ - static_cast<int64_t>(jobs.size()), kMostInOnePage)));
      OPTFARM_ASSIGN_OR_RETURN(v1::ListJobsResponse response,
                               client->ListJobs(request));
      for (v1::Job& job : *response.mutable_jobs()) {
        jobs.push_back(std::move(job));
      }
      request.set_page_token(response.next_page_token());
      more = !response.next_page_token().empty() && response.jobs_size() > 0;
    }
    if (jobs.empty() && context.format == OutputFormat::kTable) {
      *context.out << "No jobs" << (Filter().empty() ? "" : " like that")
                   << ".\n";
      return ExitCode::kOk;
    }
    *context.out << MakeJobsTable(jobs).ToFormat(context.format);
    if (more) {
      *context.err << "There are more; --limit=N shows more than " << limit_
                   << ".\n";
    }
    return ExitCode::kOk;
  }

 private:
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
};

}  // namespace

CommandInfo ListCommand() {
  return {
      "list", "List jobs, newest first.",
      "  optctl list --state=RUNNING\n  optctl list --model=9f86d081 -o csv",
      [] { return std::unique_ptr<Command>(new List); }};
}

}  // namespace optfarm::client_cli
