#include "server/services/project_blobs.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "server/conventions/names.h"
#include "server/scheduling/job_spec_check.h"
#include "server/services/list_query.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::BlobId;
using ::optfarm::storage::BlobRemoval;
using ::optfarm::storage::BlobUseRecord;

constexpr int kBlobsAPage = 100;
constexpr int kMostRemoved = 200;

// The project that is asked for. `others`: the caller may name another one.
absl::StatusOr<std::string> ProjectOf(const Caller& caller,
                                      const std::string& asked, bool others) {
  if (asked.empty() || asked == caller.project) return caller.project;
  OPTFARM_RETURN_IF_ERROR(CheckName("project", asked));
  if (others) return asked;
  return absl::PermissionDeniedError(absl::StrCat(
      "the token '", caller.name, "' is of the project ", caller.project,
      ": files of ", asked, " want one of that project, or the scope admin"));
}

// "SIZE-SHA256" of the last blob of a page: lists by size have no numbers.
std::string BlobPageToken(const BlobId& last) {
  return absl::StrCat(last.size_bytes, "-", last.sha256);
}

absl::StatusOr<storage::BlobPageRequest> ParseBlobPage(
    const v1::ListBlobsRequest& request) {
  OPTFARM_ASSIGN_OR_RETURN(const storage::PageRequest page,
                           ParsePage(request.page_size(), kBlobsAPage, ""));
  storage::BlobPageRequest blobs;
  blobs.limit = page.limit;
  const std::string& token = request.page_token();
  if (token.empty()) return blobs;
  const std::vector<std::string> parts = absl::StrSplit(token, '-');
  if (parts.size() != 2 || !IsSha256Hex(parts[1]) ||
      !absl::SimpleAtoi(parts[0], &blobs.after.size_bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_token ", Quoted(token),
                     " is none: send next_page_token of the last answer"));
  }
  blobs.after.sha256 = parts[1];
  return blobs;
}

v1::BlobUse::Kind ToProto(BlobUseRecord::Kind kind) {
  switch (kind) {
    case BlobUseRecord::Kind::kModel:
      return v1::BlobUse::MODEL;
    case BlobUseRecord::Kind::kArtifact:
      return v1::BlobUse::ARTIFACT;
    case BlobUseRecord::Kind::kData:
      return v1::BlobUse::DATA;
  }
  return v1::BlobUse::KIND_UNSPECIFIED;
}

absl::Status CheckNamed(const v1::RemoveBlobsRequest& request) {
  if (request.sha256().empty() || request.sha256_size() > kMostRemoved) {
    return absl::InvalidArgumentError(
        absl::StrCat("removing ", request.sha256_size(), " blobs; name 1 to ",
                     kMostRemoved, " of them"));
  }
  for (const std::string& sha256 : request.sha256()) {
    if (IsSha256Hex(sha256)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "removing the blob ", Quoted(sha256),
        ": a name has 64 lower-case hexadecimal digits, the SHA-256"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ProjectBlobs::List(const Caller& caller,
                                const v1::ListBlobsRequest& request,
                                v1::ListBlobsResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string project,
      ProjectOf(caller, request.project(), caller.OfFarm()));
  OPTFARM_ASSIGN_OR_RETURN(const storage::BlobPageRequest page,
                           ParseBlobPage(request));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<storage::ProjectBlobRecord> records,
      store_.ListProjectBlobs(project, page));
  for (const storage::ProjectBlobRecord& record : records) {
    OPTFARM_RETURN_IF_ERROR(Describe(record, *response.add_blobs()));
  }
  if (static_cast<int>(records.size()) == page.limit) {
    response.set_next_page_token(BlobPageToken(records.back().id));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const storage::ProjectUsage usage,
      store_.GetProjectUsage(project, absl::InfiniteFuture()));
  response.set_project(project);
  response.set_total_bytes(usage.bytes);
  response.set_max_bytes(limits_.Of(project).max_bytes);
  return absl::OkStatus();
}

absl::Status ProjectBlobs::Describe(const storage::ProjectBlobRecord& record,
                                    v1::ProjectBlob& blob) {
  *blob.mutable_digest() = storage::ToProto(record.id);
  blob.set_jobs(record.jobs);
  blob.set_live_jobs(record.live_jobs);
  for (const BlobUseRecord& use : record.uses) {
    v1::BlobUse& added = *blob.add_uses();
    added.set_job_id(use.job_id);
    added.set_kind(ToProto(use.kind));
    added.set_name(use.name);
    added.set_live(use.live);
  }
  // Unlike Contains, this is no use of it.
  const absl::Status there = blobs_.OpenBlob(record.id.sha256).status();
  blob.set_missing(absl::IsNotFound(there));
  return there.ok() || blob.missing() ? absl::OkStatus() : there;
}

absl::StatusOr<std::map<std::string, std::string>> ProjectBlobs::NeededByTunes(
    const std::string& project) {
  std::map<std::string, std::string> needed;
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<storage::TuneRecord> running,
                           tunes_.ListRunning());
  for (const storage::TuneRecord& tune : running) {
    if (tune.tune.project() != project) continue;
    for (const BlobId& id : BlobsOf(tune.spec.job())) {
      needed[id.sha256] = tune.tune.tune_id();
    }
  }
  return needed;
}

absl::Status ProjectBlobs::Remove(Call& call,
                                  const v1::RemoveBlobsRequest& request,
                                  v1::RemoveBlobsResponse& response) {
  call.subject =
      absl::StrCat(request.project(), request.project().empty() ? "" : ": ",
                   absl::StrJoin(request.sha256(), " "));
  OPTFARM_RETURN_IF_ERROR(CheckNamed(request));
  OPTFARM_ASSIGN_OR_RETURN(const std::string project,
                           ProjectOf(call.caller, request.project(),
                                     call.caller.May(v1::Access::ADMIN)));
  OPTFARM_ASSIGN_OR_RETURN(const auto tuned, NeededByTunes(project));
  std::vector<BlobId> orphans;
  for (const std::string& sha256 : request.sha256()) {
    v1::BlobRemoval& removal = *response.add_removals();
    removal.mutable_digest()->set_sha256(sha256);
    removal.set_outcome(v1::BlobRemoval::NEEDED);
    if (const auto tune = tuned.find(sha256); tune != tuned.end()) {
      removal.set_needed_by(tune->second);
      continue;
    }
    // One after another: others write between them.
    OPTFARM_ASSIGN_OR_RETURN(const BlobRemoval done,
                             store_.RemoveProjectBlob(project, sha256));
    removal.mutable_digest()->set_size_bytes(done.given_back_bytes);
    removal.set_needed_by(done.job_id);
    if (done.outcome == BlobRemoval::Outcome::kNeeded) continue;
    removal.set_outcome(done.outcome == BlobRemoval::Outcome::kRemoved
                            ? v1::BlobRemoval::REMOVED
                            : v1::BlobRemoval::NOT_THERE);
    response.set_given_back_bytes(response.given_back_bytes() +
                                  done.given_back_bytes);
    if (done.is_orphan) orphans.push_back({sha256, done.given_back_bytes});
  }
  response.set_freed_bytes(janitor_.DropOrphans(orphans, clock_.Now()));
  OPTFARM_ASSIGN_OR_RETURN(
      const storage::ProjectUsage usage,
      store_.GetProjectUsage(project, absl::InfiniteFuture()));
  response.set_total_bytes(usage.bytes);
  return absl::OkStatus();
}

}  // namespace optfarm::server
