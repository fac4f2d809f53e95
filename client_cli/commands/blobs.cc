// optctl blobs list and rm: the files that count for a project.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/commands/commands.h"
#include "client_cli/flags/exit_code.h"
#include "client_cli/flags/flags.h"
#include "client_cli/tables/proto_json.h"
#include "client_cli/tables/table.h"

namespace optfarm::client_cli {
namespace {

constexpr size_t kShownDigits = 12;
// Fewer would name a file by accident.
constexpr size_t kLeastDigits = 6;
constexpr int kBlobsAPage = 1000;
constexpr size_t kRemovedTogether = 200;

std::string ShortDigest(const std::string& sha256) {
  return sha256.substr(0, kShownDigits);
}

const char* KindText(v1::BlobUse::Kind kind) {
  switch (kind) {
    case v1::BlobUse::MODEL:
      return "model";
    case v1::BlobUse::DATA:
      return "data";
    case v1::BlobUse::ARTIFACT:
      return "artifact";
    default:
      return "unknown";
  }
}

// "45.2 MB of 2.0 GB", or "45.2 MB" without a limit.
std::string UsedText(int64_t bytes, int64_t most) {
  return most > 0 ? absl::StrCat(HumanBytes(bytes), " of ", HumanBytes(most))
                  : HumanBytes(bytes);
}

class BlobsList final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Text("project", "PROJECT",
                "The project; another than the token's requires scope admin.",
                &project_);
    flags->Integer("limit", "Most files to list; 0: all. Default: 100.",
                   &limit_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    using enum Table::Align;
    Table table({{"sha256", "DIGEST"},
                 {"size_bytes", "SIZE", kRight},
                 {"kind", "KIND"},
                 {"name", "NAME", kLeft, false, 24},
                 {"job_id", "NEWEST JOB"},
                 {"jobs", "JOBS", kRight},
                 {"live_jobs", "LIVE", kRight},
                 {"missing", "STORED", kLeft, true}});
    v1::ListBlobsRequest request;
    request.set_project(project_);
    v1::ListBlobsResponse page;
    int64_t left = limit_ == 0 ? std::numeric_limits<int64_t>::max() : limit_;
    do {
      request.set_page_size(
          static_cast<int32_t>(std::min<int64_t>(left, kBlobsAPage)));
      OPTFARM_ASSIGN_OR_RETURN(page, client->ListBlobs(request));
      for (const v1::ProjectBlob& blob : page.blobs()) {
        AddRow(blob, context.format.wide, table);
      }
      left -= page.blobs_size();
      request.set_page_token(page.next_page_token());
    } while (left > 0 && !request.page_token().empty());
    if (context.format != OutputFormat::kTable || !table.rows().empty()) {
      *context.out << table.ToFormat(context.format);
    }
    if (context.format == OutputFormat::kTable) {
      *context.out << WrapText(
          absl::StrCat("The files of the project ", page.project(), " have ",
                       UsedText(page.total_bytes(), page.max_bytes()),
                       page.next_page_token().empty()
                           ? "."
                           : "; there are more than these: --limit=0 lists "
                             "all."),
          0);
    }
    return ExitCode::kOk;
  }

 private:
  static void AddRow(const v1::ProjectBlob& blob, bool wide, Table& table) {
    const std::string& sha256 = blob.digest().sha256();
    Cell kind, name, job;
    if (!blob.uses().empty()) {
      const v1::BlobUse& newest = blob.uses(0);
      kind = Cell::Text(KindText(newest.kind()));
      if (!newest.name().empty()) name = Cell::Text(newest.name());
      job = Cell::Text(newest.job_id());
    }
    const int64_t size = blob.digest().size_bytes();
    table.AddRow({Cell(sha256, wide ? sha256 : ShortDigest(sha256)),
                  Cell(size, HumanBytes(size)), kind, name, job,
                  Cell::Integer(blob.jobs()), Cell::Integer(blob.live_jobs()),
                  Cell(blob.missing(), blob.missing() ? "no" : "yes")});
  }

  std::string project_;
  int64_t limit_ = 100;
};

// All blobs of a project, largest first.
absl::StatusOr<std::vector<std::string>> AllDigests(
    FarmClient& client, const std::string& project) {
  std::vector<std::string> digests;
  v1::ListBlobsRequest request;
  request.set_project(project);
  request.set_page_size(kBlobsAPage);
  do {
    OPTFARM_ASSIGN_OR_RETURN(const v1::ListBlobsResponse page,
                             client.ListBlobs(request));
    for (const v1::ProjectBlob& blob : page.blobs()) {
      digests.push_back(blob.digest().sha256());
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return digests;
}

// The blob that `text` is, or begins.
absl::StatusOr<std::string> FindDigest(const std::vector<std::string>& known,
                                       const std::string& text) {
  std::vector<std::string> found;
  for (const std::string& sha256 : known) {
    if (absl::StartsWith(sha256, text)) found.push_back(sha256);
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    return FromServer(absl::NotFoundError(
        absl::StrCat("no file of the project begins with '", text,
                     "'; optctl blobs list shows them")));
  }
  return UsageError(absl::StrCat(found.size(), " files begin with '", text,
                                 "'; type more of one"));
}

class BlobsRm final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Arguments("DIGEST",
                     "A file's SHA-256, or its first digits, at least 6.",
                     &typed_);
    flags->Text("project", "PROJECT",
                "The project; another than the token's requires scope admin.",
                &project_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_RETURN_IF_ERROR(CheckTyped());
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> digests,
                             Resolve(*client));
    v1::RemoveBlobsResponse all;
    for (size_t begin = 0; begin < digests.size(); begin += kRemovedTogether) {
      v1::RemoveBlobsRequest request;
      request.set_project(project_);
      const size_t end = std::min(digests.size(), begin + kRemovedTogether);
      for (size_t i = begin; i < end; ++i) request.add_sha256(digests[i]);
      OPTFARM_ASSIGN_OR_RETURN(const v1::RemoveBlobsResponse part,
                               client->RemoveBlobs(request));
      all.mutable_removals()->MergeFrom(part.removals());
      all.set_given_back_bytes(all.given_back_bytes() +
                               part.given_back_bytes());
      all.set_freed_bytes(all.freed_bytes() + part.freed_bytes());
      all.set_total_bytes(part.total_bytes());
    }
    Print(all, context);
    return CodeOf(all);
  }

 private:
  absl::Status CheckTyped() {
    for (std::string& text : typed_) {
      absl::AsciiStrToLower(&text);
      const bool is_hex =
          text.find_first_not_of("0123456789abcdef") == std::string::npos;
      if (is_hex && text.size() >= kLeastDigits && text.size() <= 64) continue;
      return UsageError(absl::StrCat(
          "'", text, "' is no SHA-256 and not the beginning of one: give ",
          kLeastDigits, " to 64 hexadecimal digits"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> Resolve(FarmClient& client) {
    std::vector<std::string> digests = typed_;
    std::vector<std::string> known;
    for (std::string& digest : digests) {
      if (IsSha256Hex(digest)) continue;
      if (known.empty()) {
        OPTFARM_ASSIGN_OR_RETURN(known, AllDigests(client, project_));
      }
      OPTFARM_ASSIGN_OR_RETURN(digest, FindDigest(known, digest));
    }
    return digests;
  }

  static void Print(const v1::RemoveBlobsResponse& all,
                    const CommandContext& context) {
    if (context.format == OutputFormat::kJson) {
      *context.out << ProtoToJson(all);
      return;
    }
    Table table({{"sha256", "DIGEST"},
                 {"outcome", "OUTCOME"},
                 {"size_bytes", "GIVEN BACK", Table::Align::kRight},
                 {"needed_by", "NEEDED BY"}});
    for (const v1::BlobRemoval& one : all.removals()) {
      const std::string& sha256 = one.digest().sha256();
      const bool removed = one.outcome() == v1::BlobRemoval::REMOVED;
      table.AddRow(
          {Cell(sha256, context.format.wide ? sha256 : ShortDigest(sha256)),
           Cell::Text(OutcomeText(one.outcome())),
           removed ? Cell(one.digest().size_bytes(),
                          HumanBytes(one.digest().size_bytes()))
                   : Cell(),
           one.needed_by().empty() ? Cell() : Cell::Text(one.needed_by())});
    }
    *context.out << table.ToFormat(context.format);
    if (context.format != OutputFormat::kTable) return;
    *context.out << HumanBytes(all.given_back_bytes())
                 << " no longer count for the project, "
                 << HumanBytes(all.total_bytes()) << " do. "
                 << HumanBytes(all.freed_bytes())
                 << " have left the disk; what was used within the last hour, "
                    "or is another project's too, has not.\n";
  }

  static const char* OutcomeText(v1::BlobRemoval::Outcome outcome) {
    switch (outcome) {
      case v1::BlobRemoval::REMOVED:
        return "removed";
      case v1::BlobRemoval::NOT_THERE:
        return "not there";
      case v1::BlobRemoval::NEEDED:
        return "needed";
      default:
        return "unknown";
    }
  }

  static ExitCode CodeOf(const v1::RemoveBlobsResponse& all) {
    ExitCode code = ExitCode::kOk;
    for (const v1::BlobRemoval& one : all.removals()) {
      if (one.outcome() == v1::BlobRemoval::NEEDED) return ExitCode::kJobFailed;
      if (one.outcome() == v1::BlobRemoval::NOT_THERE) {
        code = ExitCode::kNotFound;
      }
    }
    return code;
  }

  std::vector<std::string> typed_;
  std::string project_;
};

}  // namespace

CommandInfo BlobsListCommand() {
  return {"blobs list",
          "List the files that count for a project, largest first.",
          "What the project uploaded and what its jobs made, with the newest "
          "job that has to do with each. -o wide, json and csv have whole "
          "digests.",
          [] { return std::unique_ptr<Command>(new BlobsList); }};
}

CommandInfo BlobsRmCommand() {
  return {"blobs rm", "Remove files from a project.",
          "A file no longer counts for the project, and jobs that have ended "
          "keep their reports and results without it. Files that a live job or "
          "tune needs stay, and the exit code is 1 then; it is 4 when one was "
          "not there. The server deletes the bytes when no other project has "
          "them and nobody has used them for an hour.",
          [] { return std::unique_ptr<Command>(new BlobsRm); }};
}

}  // namespace optfarm::client_cli
