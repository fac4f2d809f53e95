// Names what is in a picture: label_image MODEL LABELS PICTURE.ppm
// The model takes one picture of floats, batch first; PPM needs no library.
#include <optfarm/runtime.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace api = optfarm::api;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "label_image: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T Get(api::Result<T> result) {
  if (!result.ok()) Fail(result.status().message());
  return *std::move(result);
}

int main(int argc, char** argv) {
  if (argc != 4) Fail("usage: label_image MODEL LABELS PICTURE.ppm");
  const auto model = Get(api::Model::Load(argv[1]));
  const auto inputs = Get(model.Inputs());
  auto dims = inputs.at(0).dims.value_or(std::vector<int64_t>());
  if (dims.size() != 4 || dims[1] < 1 || dims[2] < 1 || dims[3] != 3) {
    Fail("the model does not take a picture of a fixed size and 3 colours");
  }
  dims[0] = 1;

  std::ifstream file(argv[3], std::ios::binary);
  std::string magic;
  int64_t columns = 0, rows = 0, maximum = 0;
  file >> magic >> columns >> rows >> maximum;
  if (magic != "P6" || columns < 1 || rows < 1 || maximum != 255 ||
      columns > 20000 || rows > 20000) {
    Fail("the picture is no P6 file of 255 levels");
  }
  std::vector<char> bytes(columns * rows * 3 + 1);  // A space, the pixels.
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::vector<float> pixels;
  for (int64_t i = 0; i < dims[1] * dims[2] * 3; ++i) {
    const int64_t y = i / 3 / dims[2] * rows / dims[1];
    const int64_t x = i / 3 % dims[2] * columns / dims[2];
    const char level = bytes[(y * columns + x) * 3 + i % 3 + 1];
    pixels.push_back(static_cast<unsigned char>(level) / 127.5f - 1.0f);
  }

  const auto session = Get(api::Session::Create(model));
  const auto picture = Get(api::Tensor::Copy<float>(pixels, dims));
  const auto outputs = Get(session.Run(picture));
  std::multimap<float, std::string, std::greater<>> best;
  std::ifstream labels(argv[2]);
  std::string label;
  for (const float score : outputs.at(0).data<float>()) {
    if (!std::getline(labels, label)) break;
    label += " (" + std::to_string(best.size()) + ")";
    best.emplace(score, label);
  }
  int left = 5;
  for (const auto& [score, name] : best) {
    if (left-- > 0) std::printf("%s: %g\n", name.c_str(), score);
  }
}
