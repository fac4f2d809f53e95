// A server that works is backed up, and another one goes on from the backup.

#include "server/upkeep/server_backup.h"

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "optfarm/v1/store.grpc.pb.h"
#include "server/upkeep/data_dir.h"
#include "storage/file_blob_store.h"
#include "storage/sqlite/database.h"
#include "storage/token_store.h"
#include "tests/server/server_fixture.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ServerBackupTest : public ServerFixture {
 protected:
  absl::StatusOr<v1::BackupResponse> Backup(const std::string& name) {
    const auto stub = v1::StoreService::NewStub(channel_);
    Context context;
    v1::BackupRequest request;
    request.set_name(name);
    v1::BackupResponse response;
    const absl::Status status =
        rpc::FromGrpc(stub->Backup(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }
  std::string InBackups(absl::string_view file) const {
    return JoinPath(JoinPath(options_.data_dir, "backups"), file);
  }
  // Restores into a new folder, where a server may begin.
  absl::StatusOr<RestoredBackup> Restore(const std::string& data_dir,
                                         const std::string& manifest) {
    auto folder = DataDir::Open(data_dir);
    if (!folder.ok()) return folder.status();
    storage::FileBlobStoreOptions blobs;
    blobs.root = (*folder)->blobs();
    blobs.reserved_free_bytes = 0;
    auto store = storage::OpenFileBlobStore(blobs);
    if (!store.ok()) return store.status();
    return RestoreServerBackup(manifest, **folder, **store);
  }
  void Overwrite(const std::string& path, const std::string& text) {
    ASSERT_THAT(WriteFileAtomically(path, text), IsOk());
  }
};

TEST_F(ServerBackupTest, AServerUnderLoadIsBackedUpAndAnotherOneGoesOn) {
  server_.reset();
  storage::TokenRecord token;
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto tokens,
        storage::OpenSqliteTokenStore(JoinPath(options_.data_dir, "tokens.db"),
                                      clock_.Now()));
    token.token_id = "t1";
    token.name = "team";
    token.secret_sha256 = std::string(64, 'a');
    token.create_time = clock_.Now();
    token.expire_time = absl::InfiniteFuture();
    ASSERT_THAT(tokens->Add(token), IsOk());
  }
  Restart();
  // What is accepted before the backup begins must be in it.
  v1::SubmitJobRequest first = GoodSubmit();
  first.mutable_spec()->set_no_cache(true);
  std::vector<std::string> before;
  for (int i = 0; i < 20; ++i) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(first));
    before.push_back(job.job_id());
  }
  RunOptimize();
  std::atomic<bool> stop = false;
  std::atomic<int> submitted = 0;
  std::vector<std::thread> load;
  for (int i = 0; i < 3; ++i) {
    load.emplace_back([&, request = first] {
      while (!stop) {
        EXPECT_THAT(Submit(request), IsOk());
        ++submitted;
      }
    });
  }
  while (submitted < 5) std::this_thread::yield();
  const auto backup = Backup("night");
  stop = true;
  for (std::thread& thread : load) thread.join();
  ASSERT_THAT(backup, IsOk());
  EXPECT_EQ(backup->path(), InBackups("night.db"));
  server_.reset();

  const std::string from = options_.data_dir;
  options_.data_dir = JoinPath(folder_, "restored");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const RestoredBackup without_files,
      Restore(options_.data_dir, JoinPath(from, "backups/night.manifest")));
  // The model and what the worker made of it.
  EXPECT_EQ(without_files.blobs, 2);
  EXPECT_EQ(without_files.missing_blobs, 2);
  EXPECT_EQ(without_files.time, clock_.Now());
  ASSERT_THAT(RemoveAll(options_.data_dir), IsOk());
  ASSERT_THAT(MakeFolders(options_.data_dir), IsOk());
  std::filesystem::copy(JoinPath(from, "blobs"),
                        JoinPath(options_.data_dir, "blobs"),
                        std::filesystem::copy_options::recursive);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const RestoredBackup restored,
      Restore(options_.data_dir, JoinPath(from, "backups/night.manifest")));
  EXPECT_EQ(restored.missing_blobs, 0);
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto tokens,
        storage::OpenSqliteTokenStore(JoinPath(options_.data_dir, "tokens.db"),
                                      clock_.Now()));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto list, tokens->List());
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].name, "team");
  }
  // It goes on: what was there is there, and work is done.
  Restart();
  for (const std::string& job_id : before) {
    EXPECT_THAT(GetJob(job_id), IsOk()) << job_id;
  }
  EXPECT_EQ(GetJob(before[0])->state(), v1::SUCCEEDED);
  RunOptimize();
  EXPECT_EQ(GetJob(before[1])->state(), v1::SUCCEEDED);
}

TEST_F(ServerBackupTest, ABackupThatWasChangedIsNotRestored) {
  ASSERT_THAT(Submit(GoodSubmit()), IsOk());
  ASSERT_THAT(Backup("b"), IsOk());
  const std::string manifest = InBackups("b.manifest");
  const std::string target = JoinPath(folder_, "target");
  const auto expect_refused = [&](const std::string& path,
                                  const std::string& text,
                                  const std::string& why) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string good, ReadFile(path));
    Overwrite(path, text);
    EXPECT_THAT(Restore(target, manifest),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(why)));
    EXPECT_FALSE(Exists(JoinPath(target, "optfarm.db")));
    EXPECT_FALSE(Exists(JoinPath(target, "tokens.db")));
    Overwrite(path, good);
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(manifest));
  expect_refused(manifest, "", "half of one");
  expect_refused(manifest, text.substr(0, text.size() / 2), "half of one");
  expect_refused(manifest, absl::StrReplaceAll(text, {{"jobs 1", "jobs 2"}}),
                 "was changed");
  for (const char* name : {"b.db", "b.tokens.db", "b.audit.db"}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(InBackups(name)));
    bytes[bytes.size() / 2] ^= 1;
    expect_refused(InBackups(name), bytes, "not what its manifest says");
  }
  EXPECT_THAT(Restore(target, manifest), IsOk());
  EXPECT_THAT(Restore(target, manifest),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("already a database")));
}

// A damaged copy is worse than none.
TEST_F(ServerBackupTest, ADamagedDatabaseGivesNoBackup) {
  server_.reset();
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto db,
        storage::SqliteDatabase::Open(JoinPath(options_.data_dir, "tunes.db")));
    ASSERT_THAT(db->Run("PRAGMA foreign_keys = OFF;"
                        "CREATE TABLE a (x INTEGER PRIMARY KEY);"
                        "CREATE TABLE b (x REFERENCES a(x));"
                        "INSERT INTO b VALUES (7)"),
                IsOk());
  }
  Restart();
  EXPECT_THAT(Backup("b"), StatusIs(absl::StatusCode::kDataLoss,
                                    HasSubstr("refer to rows")));
  EXPECT_THAT(*ListFolder(JoinPath(options_.data_dir, "backups")), IsEmpty());
}

}  // namespace
}  // namespace optfarm::server
