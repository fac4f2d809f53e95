// Runs a fuzz target without libFuzzer: every seed of a folder, and what a
// seeded generator makes of it by cutting, flipping and repeating. So what a
// fuzzer once found stays found on every build.
//
// usage: NAME_fuzz_replay SEED_FOLDER [MUTATIONS_PER_SEED]

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void RunOne(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()),
                         input.size());
}

std::string Mutated(std::string bytes, std::mt19937& random) {
  // Plain modulo: the standard's distributions differ between libraries.
  const auto below = [&random](size_t n) { return n == 0 ? 0 : random() % n; };
  for (size_t edits = 1 + below(4); edits > 0 && !bytes.empty(); --edits) {
    const size_t at = below(bytes.size());
    const size_t length = std::min(bytes.size() - at, 1 + below(16));
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(at, length);
        break;
      default:
        bytes.insert(below(bytes.size()), bytes.substr(at, length));
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " SEED_FOLDER [MUTATIONS_PER_SEED]\n";
    return 2;
  }
  const int mutations = argc > 2 ? std::atoi(argv[2]) : 200;
  std::vector<std::filesystem::path> seeds;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.is_regular_file()) seeds.push_back(entry.path());
  }
  std::sort(seeds.begin(), seeds.end());
  if (seeds.empty()) {
    std::cerr << "no seeds in " << argv[1] << "\n";
    return 1;
  }
  std::mt19937 random(1);
  for (const std::filesystem::path& seed : seeds) {
    std::ifstream file(seed, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    // Shown before it runs, so that a crash has a name.
    std::cout << seed.filename().string() << std::endl;
    RunOne(bytes);
    for (int i = 0; i < mutations; ++i) RunOne(Mutated(bytes, random));
  }
  std::cout << seeds.size() << " seeds, " << mutations << " mutations each\n";
  return 0;
}
