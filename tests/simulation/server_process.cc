#include "tests/simulation/server_process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "storage/file_blob_store.h"
#include "storage/sqlite/metadata_store.h"

namespace optfarm::simulation {
namespace {

// Those of server/server.cc.
constexpr absl::Duration kPause = absl::Seconds(20);
constexpr absl::Duration kUptimeInterval = absl::Seconds(5);
constexpr absl::Duration kCleanUpInterval = absl::Hours(1);

std::string InData(absl::string_view name) {
  return absl::StrCat(kDataFolder, "/", name);
}

}  // namespace

ServerProcess::ServerProcess(SimDisk& disk, const ServerSettings& settings,
                             ServerHooks hooks)
    : disk_(disk),
      settings_(settings),
      hooks_(std::move(hooks)),
      files_(disk),
      limits_(settings.limits, {}) {}

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(
    SimDisk& disk, const ServerSettings& settings, ServerHooks hooks,
    absl::Time now) {
  std::unique_ptr<ServerProcess> process(
      new ServerProcess(disk, settings, std::move(hooks)));
  OPTFARM_RETURN_IF_ERROR(process->Open(now));
  return process;
}

absl::Status ServerProcess::Open(absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(
      std::unique_ptr<storage::MetadataStore> store,
      storage::OpenSqliteMetadataStore(InData("optfarm.db"), now));
  store_ = std::make_unique<WatchedStore>(std::move(store), hooks_.committed);
  storage::FileBlobStoreOptions blob_options;
  blob_options.root = InData("blobs");
  blob_options.files = &files_;
  blob_options.max_total_bytes = settings_.max_store_bytes;
  OPTFARM_ASSIGN_OR_RETURN(blobs_, storage::OpenFileBlobStore(blob_options));
  const bool may_evict =
      settings_.max_store_bytes < std::numeric_limits<int64_t>::max();
  janitor_ = std::make_unique<server::BlobJanitor>(*blobs_, *store_, may_evict);
  scheduler_ = std::make_unique<server::Scheduler>(
      *store_, *blobs_, settings_.scheduling, "server-1");
  admission_ = std::make_unique<server::Admission>(*scheduler_, *blobs_,
                                                   *store_, limits_);
  polls_ = std::make_unique<server::LongPolls>(*scheduler_, hooks_.wake);
  scheduler_->SetJobIds(hooks_.next_job_id);
  scheduler_->SetListener(
      [this](const server::SchedulerNews& news) { polls_->NoteNews(news); });
  OPTFARM_ASSIGN_OR_RETURN(server::AwayTime away, ReadUptime());
  return scheduler_->Load(now, std::move(away));
}

absl::StatusOr<server::AwayTime> ServerProcess::ReadUptime() {
  const absl::StatusOr<std::string> text = ReadFile(disk_, InData("uptime"));
  if (absl::IsNotFound(text.status())) return server::AwayTime();
  if (!text.ok()) return text.status();
  return server::AwayTime::FromText(*text).value_or(server::AwayTime());
}

void ServerProcess::KeepUptime(absl::Time now, bool at_once) {
  if (!at_once && now >= uptime_kept_ && now - uptime_kept_ < kUptimeInterval) {
    return;
  }
  uptime_kept_ = now;
  // As in the server, a failure is worth a line in the log.
  WriteFileAtomically(disk_, InData("uptime"), scheduler_->Away(now).ToText())
      .IgnoreError();
}

absl::Time ServerProcess::Step(absl::Time now) {
  const absl::Duration gap = last_step_ == absl::InfinitePast()
                                 ? absl::ZeroDuration()
                                 : now - last_step_;
  const bool away = gap > kPause || gap < -kPause;
  if (away) scheduler_->ForgivePause(last_step_, now);
  last_step_ = now;
  KeepUptime(now, away);
  const absl::Time next = scheduler_->Tick(now);
  const absl::Time next_poll = polls_->Run(now);
  CleanUp(now);
  return std::min({next, next_poll, now + kUptimeInterval});
}

void ServerProcess::CleanUp(absl::Time now) {
  if (now < next_clean_up_) return;
  next_clean_up_ = now + kCleanUpInterval;
  janitor_->CleanUp(now);
  server::LetGo(*store_, settings_.retention, now);
}

void ServerProcess::Drain(absl::Time now) {
  scheduler_->Drain();
  polls_->Run(now, /*all=*/true);
}

absl::StatusOr<server::SubmitResult> ServerProcess::Submit(
    const server::Caller& caller, const v1::SubmitJobRequest& request,
    absl::Time now) {
  return admission_->Submit(caller, request, now);
}

absl::Status ServerProcess::Upload(const server::Caller& caller,
                                   const std::string& bytes, bool breaks,
                                   absl::Time now) {
  storage::BlobId id{Sha256Hex(bytes), static_cast<int64_t>(bytes.size())};
  bool present = true;
  if (!caller.OfFarm()) {
    OPTFARM_ASSIGN_OR_RETURN(present,
                             store_->ProjectHasBlob(caller.project, id.sha256));
  }
  if (present) {
    OPTFARM_ASSIGN_OR_RETURN(present, blobs_->Contains(id, now));
  }
  if (present) return absl::OkStatus();
  id.uploader = caller.name;
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<storage::BlobUpload> upload,
                           janitor_->OpenUpload(id, now));
  const int64_t offset = upload->staged_bytes();
  absl::string_view rest = absl::string_view(bytes).substr(
      static_cast<size_t>(std::min(offset, id.size_bytes)));
  if (breaks) rest = rest.substr(0, rest.size() / 2);
  OPTFARM_RETURN_IF_ERROR(upload->Append(offset, rest));
  if (breaks) return absl::UnavailableError("the connection broke");
  OPTFARM_RETURN_IF_ERROR(upload->Finish(now));
  if (!caller.May(v1::Access::SUBMIT)) return absl::OkStatus();
  storage::WriteBatch batch;
  batch.project_blobs.emplace_back(caller.project,
                                   storage::BlobId{id.sha256, id.size_bytes});
  return store_->Commit(batch);
}

}  // namespace optfarm::simulation
