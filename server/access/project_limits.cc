#include "server/access/project_limits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "optfarm/v1/options.pb.h"
#include "rpc/proto_time.h"
#include "rpc/status.h"
#include "server/conventions/names.h"

namespace optfarm::server {
namespace {

constexpr size_t kMaxProjects = 10000;
// Also what a job counter in 32 bits holds.
constexpr int64_t kMostJobs = 1'000'000'000;

absl::Status SetWhole(absl::string_view value, int64_t least, int64_t most,
                      int64_t& field) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < least || number > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(value), " is no whole number from ", least, " to ", most));
  }
  field = number;
  return absl::OkStatus();
}

absl::Status SetCount(absl::string_view value, int64_t least, int& field) {
  int64_t number = 0;
  OPTFARM_RETURN_IF_ERROR(SetWhole(value, least, kMostJobs, number));
  field = static_cast<int>(number);
  return absl::OkStatus();
}

absl::Status SetRate(absl::string_view value, double& field) {
  double number = 0;
  if (!absl::SimpleAtod(value, &number) || !(number >= 0) ||
      !std::isfinite(number)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(value), " is no number from 0 on"));
  }
  field = number;
  return absl::OkStatus();
}

absl::Status SetLimit(absl::string_view key, absl::string_view value,
                      ProjectLimits& limits) {
  if (key == "max_bytes") {
    return SetWhole(value, 0, std::numeric_limits<int64_t>::max(),
                    limits.max_bytes);
  }
  if (key == "max_live_jobs") return SetCount(value, 0, limits.max_live_jobs);
  if (key == "jobs_per_day") return SetCount(value, 0, limits.max_jobs_a_day);
  if (key == "calls_per_second") return SetRate(value, limits.calls_per_second);
  if (key == "call_burst") return SetCount(value, 1, limits.call_burst);
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no limit ", Quoted(key),
      "; there are max_bytes, max_live_jobs, jobs_per_day, calls_per_second "
      "and call_burst"));
}

absl::Status ParseLine(absl::string_view line, const ProjectLimits& of_all,
                       LimitsByProject& projects) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t\r"),
                     absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  OPTFARM_RETURN_IF_ERROR(CheckName("project", words[0]));
  if (projects.size() >= kMaxProjects) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMaxProjects, " projects"));
  }
  const auto [project, added] =
      projects.try_emplace(std::string(words[0]), of_all);
  if (!added) {
    return absl::InvalidArgumentError(
        absl::StrCat("the project ", words[0], " has a line already"));
  }
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(words[i]), " is not KEY=VALUE"));
    }
    const absl::string_view key = words[i].substr(0, equals);
    OPTFARM_RETURN_IF_ERROR(
        Annotate(SetLimit(key, words[i].substr(equals + 1), project->second),
                 Quoted(key)));
  }
  return absl::OkStatus();
}

}  // namespace

ProjectLimits ProjectLimitsTable::Of(const std::string& project) const {
  absl::MutexLock lock(&mutex_);
  const auto own = of_some_.find(project);
  return own == of_some_.end() ? of_all_ : own->second;
}

std::vector<std::string> ProjectLimitsTable::WithOwn() const {
  std::vector<std::string> projects;
  absl::MutexLock lock(&mutex_);
  for (const auto& [project, limits] : of_some_) projects.push_back(project);
  return projects;
}

std::map<std::string, std::string> ProjectLimitsTable::Replace(
    LimitsByProject of_some) {
  std::map<std::string, std::string> changes;
  absl::MutexLock lock(&mutex_);
  of_some_.swap(of_some);
  const auto note = [&](const LimitsByProject& listed) {
    for (const auto& [project, ignored] : listed) {
      const auto before = of_some.find(project);
      const auto after = of_some_.find(project);
      const ProjectLimits& was =
          before == of_some.end() ? of_all_ : before->second;
      const ProjectLimits& is =
          after == of_some_.end() ? of_all_ : after->second;
      if (was == is) continue;
      changes[project] = absl::StrCat(ToText(is), ", before: ", ToText(was));
    }
  };
  note(of_some);
  note(of_some_);
  return changes;
}

absl::StatusOr<LimitsByProject> ParseProjectLimits(
    absl::string_view text, const ProjectLimits& of_all) {
  LimitsByProject projects;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    OPTFARM_RETURN_IF_ERROR(
        Annotate(ParseLine(line, of_all, projects),
                 absl::StrCat("limits of projects, line ", ++number)));
  }
  return projects;
}

std::string ToText(const ProjectLimits& limits) {
  return absl::StrCat("max_bytes=", limits.max_bytes,
                      " max_live_jobs=", limits.max_live_jobs,
                      " jobs_per_day=", limits.max_jobs_a_day,
                      " calls_per_second=", limits.calls_per_second,
                      " call_burst=", limits.call_burst);
}

absl::Status ExhaustedFor(absl::string_view message, absl::Duration wait) {
  wait = absl::Ceil(wait, absl::Seconds(1));
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat(message, "; try again in ", absl::FormatDuration(wait)));
  v1::RetryHint hint;
  *hint.mutable_retry_after() = rpc::ToProtoDuration(wait);
  rpc::AddDetail(hint, &status);
  return status;
}

absl::Status CallRate::Take(const std::string& project, absl::Time now) {
  const ProjectLimits limits = limits_.Of(project);
  if (limits.calls_per_second <= 0) return absl::OkStatus();
  const double most = std::max(1, limits.call_burst);
  absl::MutexLock lock(&mutex_);
  const auto [entry, added] = buckets_.try_emplace(project, Bucket{most, now});
  Bucket& bucket = entry->second;
  // A clock that was set back fills nothing.
  const double seconds =
      std::max(0.0, absl::ToDoubleSeconds(now - bucket.filled));
  bucket.calls =
      std::min(most, bucket.calls + seconds * limits.calls_per_second);
  bucket.filled = now;
  if (bucket.calls >= 1) {
    bucket.calls -= 1;
    return absl::OkStatus();
  }
  return ExhaustedFor(
      absl::StrCat("the project '", project, "' makes more than ",
                   limits.calls_per_second, " calls a second"),
      absl::Seconds((1 - bucket.calls) / limits.calls_per_second));
}

}  // namespace optfarm::server
