// optctl graph encrypt and decrypt: models that only holders of a key can read.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/authenticated_encryption.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "engine/formats/tensorflow/encrypted_model.h"
#include "engine/formats/tensorflow/graph_file.h"

namespace optfarm::client_cli {
namespace {

// A new key, as hex digits, in a file that only its owner can read.
absl::Status MakeKeyFile(const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string key,
                           SecretRandomBytes(kAeadKeyBytes));
  const std::string text = absl::StrCat(absl::BytesToHexString(key), "\n");
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 && errno == EEXIST) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is a file '", path,
                     "' already; leave out --make_key to use its key, or name "
                     "another --key_file"));
  }
  if (file < 0) {
    return ErrnoToStatus(errno, absl::StrCat("making key file '", path, "'"));
  }
  const bool written = ::write(file, text.data(), text.size()) ==
                       static_cast<ssize_t>(text.size());
  if (::close(file) != 0 || !written) {
    ::unlink(path.c_str());
    return absl::UnavailableError(
        absl::StrCat("key file '", path, "' could not be written"));
  }
  return absl::OkStatus();
}

absl::StatusOr<AeadKey> FindKey(const std::string& key_file) {
  if (!key_file.empty()) return formats::ReadModelKey(key_file);
  OPTFARM_ASSIGN_OR_RETURN(const std::optional<AeadKey> key,
                           formats::ModelKeyFromEnvironment());
  if (key) return *key;
  return UsageError(absl::StrCat(
      "there is no key: give --key_file=FILE, or set ",
      formats::kModelKeyFileVariable, " or ", formats::kModelKeyVariable));
}

class GraphCrypt final : public Command {
 public:
  explicit GraphCrypt(bool encrypt) : encrypt_(encrypt) {}

  void DeclareFlags(FlagSet* flags) override {
    flags->Path("in_graph", "FILE",
                encrypt_ ? "The model to encrypt." : "The model to decrypt.",
                &in_graph_);
    flags->Required();
    flags->Path("out_graph", "FILE", "The file to write.", &out_graph_);
    flags->Required();
    flags->Path("key_file", "FILE",
                "The key: 64 hex digits or 32 bytes. Default: "
                "OPTFARM_MODEL_KEY_FILE or OPTFARM_MODEL_KEY.",
                &key_file_);
    if (encrypt_) {
      flags->Switch("make_key",
                    "Create a new key and write it to --key_file first.",
                    &make_key_);
    }
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                             ReadFile(in_graph_, formats::kMaxGraphBytes));
    const std::string name = absl::StrCat("'", in_graph_, "'");
    // A mistyped name is noticed before a key is made for it.
    if (encrypt_ && formats::IsEncryptedModel(bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is encrypted already"));
    }
    if (make_key_) {
      if (key_file_.empty()) {
        return UsageError("--make_key needs --key_file=FILE to write to");
      }
      OPTFARM_RETURN_IF_ERROR(MakeKeyFile(key_file_));
      *context.err << "Made key file " << PrintableLine(key_file_)
                   << "; anybody who has it can read the model.\n";
    }
    OPTFARM_ASSIGN_OR_RETURN(const AeadKey key, FindKey(key_file_));
    OPTFARM_ASSIGN_OR_RETURN(const std::string result,
                             encrypt_
                                 ? formats::EncryptModel(bytes, key)
                                 : formats::DecryptModel(bytes, key, name));
    OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(out_graph_, result));
    return ExitCode::kOk;
  }

 private:
  const bool encrypt_;
  std::string in_graph_, out_graph_, key_file_;
  bool make_key_ = false;
};

}  // namespace

CommandInfo GraphEncryptCommand() {
  return {
      "graph encrypt", "Encrypt a model.",
      "AES-256-GCM: without the key the model cannot be read, and a modified "
      "file is rejected. Commands that take a graph decrypt it in memory when "
      "OPTFARM_MODEL_KEY_FILE (or OPTFARM_MODEL_KEY) is set; the key is never "
      "on a command line.\n"
      "  optctl graph encrypt --in_graph=m.pb --out_graph=m.enc \\\n"
      "      --key_file=model.key --make_key\n"
      "  OPTFARM_MODEL_KEY_FILE=model.key optctl graph benchmark "
      "--graph=m.enc",
      [] { return std::unique_ptr<Command>(new GraphCrypt(true)); }};
}

CommandInfo GraphDecryptCommand() {
  return {"graph decrypt", "Decrypt a model.",
          "  optctl graph decrypt --in_graph=m.enc --out_graph=m.pb \\\n"
          "      --key_file=model.key",
          [] { return std::unique_ptr<Command>(new GraphCrypt(false)); }};
}

}  // namespace optfarm::client_cli
