// Runs command lines of optctl against a farm in memory.

#ifndef OPTFARM_TESTS_CLIENT_CLI_FARM_COMMANDS_FIXTURE_H_
#define OPTFARM_TESTS_CLIENT_CLI_FARM_COMMANDS_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "client_cli/command_line.h"
#include "client_cli/command_table.h"
#include "tests/client_cli/fake_farm_client.h"
#include "tests/support/test_data.h"

namespace optfarm::client_cli {

inline constexpr char kModel[] = R"(
  node { name: "image" op: "Placeholder"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "shape" value { shape { dim { size: 1 } dim { size: 4 } } } } }
  node { name: "probabilities" op: "Softmax" input: "image"
    attr { key: "T" value { type: DT_FLOAT } } }
)";

class FarmCommandsTest : public ::testing::Test {
 protected:
  FarmCommandsTest() : folder_(::optfarm::testing::FreshFolder()) {
    model_ = Write("model.pbtxt", kModel);
    farm_.job.set_job_id("j1");
    farm_.job.set_state(v1::SUCCEEDED);
    AddDevice("pi4", v1::Device::AVAILABLE);
  }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = JoinPath(folder_, name);
    EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
    return path;
  }

  void AddDevice(const std::string& name, v1::Device::State state) {
    v1::Device& device = farm_.devices.emplace_back();
    device.mutable_info()->set_name(name);
    device.set_state(state);
  }

  // About "pi4" with four threads.
  void AddVerdict(const std::string& variant,
                  v1::ShippingVerdict::Answer answer, const std::string& text) {
    v1::ShippingVerdict& verdict = *farm_.job.add_verdicts();
    verdict.set_variant(variant);
    verdict.set_device("pi4");
    verdict.set_threads(4);
    verdict.set_answer(answer);
    verdict.set_text(text);
  }

  void AddArtifact(const std::string& name, const std::string& bytes) {
    farm_.blobs[Sha256Hex(bytes)] = bytes;
    v1::Artifact& artifact = *farm_.job.add_artifacts();
    artifact.set_name(name);
    artifact.mutable_digest()->set_sha256(Sha256Hex(bytes));
    artifact.mutable_digest()->set_size_bytes(
        static_cast<int64_t>(bytes.size()));
  }

  // Runs one command line; fills out_ and err_.
  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& words) {
    const std::vector<CommandInfo> commands = AllCommands();
    absl::StatusOr<ParsedCommandLine> parsed =
        ParseCommandLine(words, commands);
    if (!parsed.ok()) return parsed.status();
    std::ostringstream out, err;
    CommandContext context;
    context.out = &out;
    context.err = &err;
    context.format = parsed->global.format;
    context.clock = &clock_;
    context.connect = [this]() -> absl::StatusOr<std::unique_ptr<FarmClient>> {
      ++connections_;
      return std::make_unique<FakeFarmClient>(&farm_);
    };
    absl::StatusOr<ExitCode> code = parsed->command->Run(context);
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  ExitCode CodeOf(const std::vector<std::string>& words) {
    const absl::StatusOr<ExitCode> code = Run(words);
    if (code.ok()) return *code;
    message_ = std::string(code.status().message());
    return ExitCodeOf(code.status());
  }

  const std::string folder_;
  std::string model_;
  FakeFarm farm_;
  FakeClock clock_{absl::FromUnixSeconds(1'769'860'800)};
  int connections_ = 0;
  std::string out_, err_, message_;
};

}  // namespace optfarm::client_cli

#endif  // OPTFARM_TESTS_CLIENT_CLI_FARM_COMMANDS_FIXTURE_H_
