// optctl migrate: a whole farm from one database to another. The work is
// optfarm-server's, which knows the engines; this finds it and runs it.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "client_cli/commands/commands.h"

namespace optfarm::client_cli {
namespace {

constexpr char kServer[] = "optfarm-server";

// Beside this program, or where programs are looked for.
absl::StatusOr<std::string> FindServer() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::string> folders;
  if (!error) folders.push_back(self.parent_path().string());
  const char* const path = std::getenv("PATH");
  for (const absl::string_view folder :
       absl::StrSplit(path == nullptr ? "" : path, ':', absl::SkipEmpty())) {
    folders.emplace_back(folder);
  }
  folders.emplace_back("/usr/sbin");
  for (const std::string& folder : folders) {
    std::string program = JoinPath(folder, kServer);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return absl::NotFoundError(
      "optfarm-server is not installed on this machine: migrate where the "
      "server runs");
}

// The data folder that a SQLite database is in; "" for another engine.
std::string FolderOf(const std::string& database) {
  absl::string_view path = database;
  if (!absl::ConsumePrefix(&path, "sqlite:")) return "";
  if (!absl::EndsWith(path, ".db")) return std::string(path);
  const std::string folder =
      std::filesystem::path(std::string(path)).parent_path().string();
  return folder.empty() ? "." : folder;
}

class Migrate final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Text("from", "DATABASE",
                "sqlite:PATH of the server's data folder, or "
                "postgresql://USER@HOST/DATABASE.",
                &from_);
    flags->Text("to", "DATABASE", "Where to: the same, of a new database.",
                &to_);
    flags->Text("from_blobs", "PLACE",
                "Where the files are: file:FOLDER or s3://BUCKET/PREFIX. "
                "Default: in the data folder of --from.",
                &from_blobs_);
    flags->Text("to_blobs", "PLACE",
                "Where the files are copied to. Default: they stay where they "
                "are.",
                &to_blobs_);
    flags->Text("data_dir", "FOLDER",
                "Data folder of the server that will run. Default: that of "
                "SQLite.",
                &data_dir_);
    flags->Text("s3_endpoint", "URL", "As the server's.", &s3_endpoint_);
    flags->Text("s3_region", "NAME", "As the server's.", &s3_region_);
    flags->Switch("s3_path_style", "As the server's.", &s3_path_style_);
    flags->Text("s3_credentials_file", "FILE", "As the server's.",
                &s3_credentials_file_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext&) override {
    if (from_.empty() || to_.empty()) {
      return absl::InvalidArgumentError(
          "a migration needs both --from and --to, such as "
          "--from=sqlite:/var/lib/optfarm "
          "--to=postgresql://optfarm@db.example/optfarm");
    }
    SubprocessOptions server;
    OPTFARM_ASSIGN_OR_RETURN(server.argv, ServerCommand());
    OPTFARM_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Start(server));
    std::optional<SubprocessExit> exit;
    // However many rows there are.
    while (!exit.has_value()) exit = child.Wait(absl::Hours(1));
    if (exit->ok()) return ExitCode::kOk;
    if (exit->signal == 0) return ExitCode::kJobFailed;
    return absl::UnavailableError(
        absl::StrCat("the migration did not end (", exit->ToString(),
                     "); run the same command again to continue"));
  }

 private:
  absl::StatusOr<std::vector<std::string>> ServerCommand() const {
    std::string data_dir = data_dir_;
    if (data_dir.empty()) data_dir = FolderOf(to_);
    if (data_dir.empty()) data_dir = FolderOf(from_);
    if (data_dir.empty()) {
      return absl::InvalidArgumentError(
          "a migration between two PostgreSQL databases needs --data_dir, the "
          "data folder of the server that will run");
    }
    OPTFARM_ASSIGN_OR_RETURN(std::string program, FindServer());
    std::vector<std::string> words = {std::move(program)};
    const auto add = [&words](const char* flag, const std::string& value) {
      if (!value.empty()) words.push_back(absl::StrCat(flag, "=", value));
    };
    add("--data_dir", data_dir);
    add("--migrate_from", from_);
    add("--migrate_to", to_);
    add("--migrate_blobs_from", from_blobs_);
    add("--migrate_blobs_to", to_blobs_);
    add("--s3_endpoint", s3_endpoint_);
    add("--s3_region", s3_region_);
    add("--s3_credentials_file", s3_credentials_file_);
    if (s3_path_style_) words.emplace_back("--s3_path_style");
    return words;
  }

  std::string from_;
  std::string to_;
  std::string from_blobs_;
  std::string to_blobs_;
  std::string data_dir_;
  std::string s3_endpoint_;
  std::string s3_region_;
  bool s3_path_style_ = false;
  std::string s3_credentials_file_;
};

}  // namespace

CommandInfo MigrateCommand() {
  return {"migrate", "Move a stopped farm to another database.",
          "Copies all records from SQLite to PostgreSQL, or back, and with "
          "--to_blobs the files too, compares both sides row by row, and only "
          "then lets a server open the target. Stop the server first. If it is "
          "interrupted, run the same command again to continue. Runs "
          "optfarm-server of this machine; keys of a bucket come from "
          "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
          [] { return std::unique_ptr<Command>(new Migrate); }};
}

}  // namespace optfarm::client_cli
