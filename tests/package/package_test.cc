// The runtime as an app gets it: installed under a prefix, found by CMake and
// by pkg-config, linked into the example app and run there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "tests/support/test_data.h"

namespace optfarm {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::SourcePath;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The brightness of one pixel decides between two labels.
constexpr char kModel[] = R"(
node { name: "picture" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 1 } dim { size: 1 }
    dim { size: 1 } dim { size: 3 } } } } }
node { name: "shape" op: "Const"
  attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32
    tensor_shape { dim { size: 2 } } int_val: 1 int_val: 3 } } } }
node { name: "flat" op: "Reshape" input: "picture" input: "shape"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "w" op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 3 } dim { size: 2 } }
    float_val: 1 float_val: -1 float_val: 1 float_val: -1 float_val: 1
    float_val: -1 } } } }
node { name: "logits" op: "MatMul" input: "flat" input: "w"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "softmax" op: "Softmax" input: "logits"
  attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 24 }
)";

class PackageTest : public ::testing::Test {
 protected:
  // Installs once for all tests.
  static void SetUpTestSuite() {
    folder_ = new std::string(FreshFolder());
    for (const char* component : {"runtime", "runtime_dev"}) {
      EXPECT_EQ(Run({OPTFARM_CMAKE, "--install", OPTFARM_BUILD_DIR, "--prefix",
                     Path("prefix"), "--component", component}),
                "0");
    }
    Write("model.pbtxt", kModel);
    Write("labels.txt", "light\ndark\n");
    Write("white.ppm", "P6 1 1 255\n\xFF\xFF\xFF");
    Write("black.ppm", absl::StrCat("P6 1 1 255\n", std::string(3, '\0')));
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static std::string Path(absl::string_view name) {
    return JoinPath(*folder_, name);
  }
  static std::string Lib() {
    for (const char* lib : {"prefix/lib", "prefix/lib64"}) {
      if (IsFolder(Path(lib))) return Path(lib);
    }
    return Path(absl::StrCat("prefix/lib/", OPTFARM_LIBRARY_ARCHITECTURE));
  }
  static void Write(const std::string& name, const std::string& bytes) {
    EXPECT_TRUE(WriteFileAtomically(Path(name), bytes).ok());
  }

  // Runs a command to its end; returns "0", or its exit code and what it
  // printed.
  static std::string Run(std::vector<std::string> argv) {
    const std::string log = Path(absl::StrCat("log", ++runs_));
    SubprocessOptions options;
    options.argv = {"/usr/bin/env", "PKG_CONFIG_PATH=" + Lib() + "/pkgconfig",
                    "LD_LIBRARY_PATH=" + Lib()};
    options.argv.insert(options.argv.end(), argv.begin(), argv.end());
    options.output_file = log;
    options.working_folder = *folder_;
    auto child = Subprocess::Start(options);
    if (!child.ok()) return child.status().ToString();
    const auto exit = child->Wait(absl::Minutes(3));
    output_ = ReadFile(log).value_or("");
    if (exit && exit->exit_code == 0) return "0";
    return absl::StrCat(exit ? exit->exit_code : -1, " from ",
                        absl::StrJoin(argv, " "), "\n", output_);
  }
  static std::string Shell(const std::string& command) {
    return Run({"/bin/sh", "-c", command});
  }

  static void ExpectLabels(const std::string& app) {
    EXPECT_EQ(
        Run({app, Path("model.pbtxt"), Path("labels.txt"), Path("white.ppm")}),
        "0");
    EXPECT_THAT(output_, StartsWith("light (0): 0.99"));
    EXPECT_EQ(
        Run({app, Path("model.pbtxt"), Path("labels.txt"), Path("black.ppm")}),
        "0");
    EXPECT_THAT(output_, StartsWith("dark (1): 0.99"));
  }

  static std::string* folder_;
  static std::string output_;
  static int runs_;
};

std::string* PackageTest::folder_ = nullptr;
std::string PackageTest::output_;
int PackageTest::runs_ = 0;

TEST_F(PackageTest, ExampleBuildsWithCMake) {
  ASSERT_EQ(Run({OPTFARM_CMAKE, "-G", "Ninja", "-S",
                 SourcePath("examples/label_image_app"), "-B", Path("build"),
                 absl::StrCat("-DCMAKE_CXX_COMPILER=", OPTFARM_CXX),
                 "-DCMAKE_PREFIX_PATH=" + Path("prefix")}),
            "0");
  ASSERT_EQ(Run({OPTFARM_CMAKE, "--build", Path("build")}), "0");
  ExpectLabels(Path("build/label_image"));
}

TEST_F(PackageTest, ExampleBuildsWithPkgConfigSharedAndStatic) {
  for (const char* package : {"optfarm_runtime", "optfarm_runtime_static"}) {
    const std::string app = Path(package);
    ASSERT_EQ(Shell(absl::StrCat(
                  OPTFARM_CXX, " -std=c++20 -Wall -Wextra -Werror -o ", app,
                  " ", SourcePath("examples/label_image_app/label_image.cc"),
                  " $(pkg-config --cflags --libs ", package, ")")),
              "0");
    ExpectLabels(app);
  }
}

TEST_F(PackageTest, HeaderIsPlainC) {
  Write("app.c",
        "#include <optfarm/c_api.h>\n"
        "#include <stdio.h>\n"
        "int main(void) {\n"
        "  optfarm_model* model = NULL;\n"
        "  optfarm_status* status = optfarm_model_load(\"none\", NULL, &model);"
        "\n  puts(optfarm_status_message(status));\n"
        "  optfarm_status_delete(status);\n"
        "  return model != NULL;\n"
        "}\n");
  ASSERT_EQ(Shell("cc -std=c99 -pedantic -Wall -Wextra -Werror app.c -o app "
                  "$(pkg-config --cflags --libs optfarm_runtime)"),
            "0");
  EXPECT_EQ(Run({Path("app")}), "0");
  EXPECT_THAT(output_, HasSubstr("none"));
}

TEST_F(PackageTest, SharedLibraryShowsTheApiAlone) {
  ASSERT_EQ(Run({"nm", "-D", "--defined-only",
                 JoinPath(Lib(), "liboptfarm_runtime.so")}),
            "0");
  int shown = 0;
  for (const absl::string_view line :
       absl::StrSplit(output_, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    EXPECT_THAT(words.back(), StartsWith("optfarm_"));
    ++shown;
  }
  EXPECT_GT(shown, 30);
}

}  // namespace
}  // namespace optfarm
