// Phones of a stand-in for adb (tests/support/fake_adb.py), each a folder, and
// the agent that they hang on.

#ifndef OPTFARM_TESTS_INTEGRATION_PHONES_H_
#define OPTFARM_TESTS_INTEGRATION_PHONES_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/support/test_data.h"

namespace optfarm::integration {

// The agent for Arm and the emulator that runs it here.
struct ArmAgent {
  std::string emulator;
  std::string program;

  bool is_there() const { return !program.empty(); }
  std::vector<std::string> Command() const {
    return {emulator, program, absl::StrCat("--launcher=", emulator),
            // An emulator takes addresses for all of another processor's.
            "--max_memory_mb=-1"};
  }
};

// What environment variables OPTFARM_ARM_AGENT and OPTFARM_ARM_EMULATOR name;
// scripts/test and scripts/test_arm set them. Nothing without.
inline ArmAgent FindArmAgent() {
  const char* program = std::getenv("OPTFARM_ARM_AGENT");
  if (program == nullptr || *program == '\0') return {};
  const char* emulator = std::getenv("OPTFARM_ARM_EMULATOR");
  return {emulator == nullptr ? "/usr/bin/qemu-aarch64-static" : emulator,
          program};
}

class Phones {
 public:
  // They run `arm`'s program where it is there, else this machine's own.
  explicit Phones(const std::vector<std::string>& serials,
                  const ArmAgent& arm = FindArmAgent())
      : folder_(testing::FreshFolder()) {
    ::setenv("FAKE_ADB_PHONES", JoinPath(folder_, "phones").c_str(), 1);
    EXPECT_TRUE(MakeFolders(JoinPath(folder_, "programs")).ok());
    const std::string abi = arm.is_there() ? "arm64-v8a" : "x86_64";
    std::filesystem::create_symlink(
        arm.is_there() ? arm.program : testing::ProgramPath("optfarm-agent"),
        JoinPath(folder_, absl::StrCat("programs/optfarm-agent-", abi)));
    for (const std::string& serial : serials) {
      EXPECT_TRUE(MakeFolders(Path(serial)).ok());
      Write(serial, "props",
            absl::StrCat("ro.product.model=Stand In\nro.product.cpu.abi=", abi,
                         "\nro.build.version.release=13\n"));
      Write(serial, "battery", "  level: 80\n  temperature: 300\n");
      if (arm.is_there()) Write(serial, "emulator", arm.emulator);
    }
  }

  // "alpha" or "alpha/unplugged".
  std::string Path(const std::string& name) const {
    return JoinPath(JoinPath(folder_, "phones"), name);
  }
  void Write(const std::string& serial, const std::string& name,
             const std::string& text) const {
    EXPECT_TRUE(WriteFileAtomically(JoinPath(Path(serial), name), text).ok());
  }

  std::vector<std::string> AgentFlags() const {
    return {"--driver=adb",
            absl::StrCat("--adb=",
                         testing::SourcePath("tests/support/fake_adb.py")),
            absl::StrCat("--phone_programs=", JoinPath(folder_, "programs")),
            "--tags=lab-2"};
  }

 private:
  const std::string folder_;
};

}  // namespace optfarm::integration

#endif  // OPTFARM_TESTS_INTEGRATION_PHONES_H_
