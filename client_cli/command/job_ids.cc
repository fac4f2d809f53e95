#include "client_cli/command/job_ids.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client_cli/flags/exit_code.h"

namespace optfarm::client_cli {
namespace {

constexpr char kLatest[] = "latest";
constexpr int kMostShown = 5;

bool HasBlank(const std::string& text) {
  return text.find_first_of(" \t\n=") != std::string::npos;
}

}  // namespace

absl::StatusOr<std::string> FindJobId(FarmClient& client,
                                      const std::string& text) {
  const bool latest = absl::EqualsIgnoreCase(text, kLatest);
  // Terms of a filter are separated by blanks; no id has one.
  if (!latest && (text.empty() || HasBlank(text))) return text;
  v1::ListJobsRequest request;
  request.set_page_size(latest ? 1 : kMostShown + 1);
  if (!latest) request.set_filter(absl::StrCat("job=", text));
  const absl::StatusOr<v1::ListJobsResponse> found = client.ListJobs(request);
  // A server that is older knows no such filter.
  if (!latest && absl::IsInvalidArgument(found.status())) return text;
  if (!found.ok()) return found.status();
  std::vector<std::string> ids;
  for (const v1::Job& job : found->jobs()) {
    if (job.job_id() == text || latest) return job.job_id();
    if (absl::StartsWith(job.job_id(), text)) ids.push_back(job.job_id());
  }
  if (latest) return FromServer(absl::NotFoundError("there are no jobs yet"));
  if (ids.empty()) return text;
  if (ids.size() == 1) return ids[0];
  const bool more = ids.size() > kMostShown;
  if (more) ids.resize(kMostShown);
  return UsageError(absl::StrCat("several jobs begin with '", text,
                                 "': ", absl::StrJoin(ids, ", "),
                                 more ? ", ..." : "", "; type more of one"));
}

}  // namespace optfarm::client_cli
