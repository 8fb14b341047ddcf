#include "tests/support/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace rk {
namespace {

class PageParser {
 public:
  explicit PageParser(std::string_view text) : text_(text) {}

  PageElement page() {
    expect("<!DOCTYPE html>");
    skip_between();
    PageElement root = element();
    skip_between();
    if (at_ != text_.size()) fail("something behind the root");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(fmt::format("{} at byte {}: '{}'", what, at_, text_.substr(at_, 60)));
  }
  bool next_is(std::string_view words) const { return text_.substr(at_).starts_with(words); }
  void expect(std::string_view words) {
    if (!next_is(words)) fail(fmt::format("no '{}'", words));
    at_ += words.size();
  }
  std::string until(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) fail(fmt::format("no '{}' follows", end));
    std::string out(text_.substr(at_, found - at_));
    at_ = found + end.size();
    return out;
  }
  void skip_between() {
    while (at_ < text_.size()) {
      if (next_is("<!--")) {
        until("-->");
      } else if (text_[at_] == '\n' || text_[at_] == ' ') {
        ++at_;
      } else {
        return;
      }
    }
  }
  std::string name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '-' || text_[at_] == ':')) {
      ++at_;
    }
    if (at_ == begin) fail("no name");
    return std::string(text_.substr(begin, at_ - begin));
  }
  // Replaces references such as &lt; by their characters; fails on what must not stand bare.
  std::string plain(const std::string& raw) const {
    std::string out;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const auto c = static_cast<unsigned char>(raw[i]);
      if (c == '<' || (c < 0x20 && c != '\n') || c == 0x7F) fail("a character that is no text");
      if (c != '&') {
        out += raw[i];
        continue;
      }
      const std::size_t end = raw.find(';', i);
      if (end == std::string::npos) fail("a bare &");
      static const std::map<std::string, std::string> kNames = {
          {"lt", "<"}, {"gt", ">"}, {"amp", "&"}, {"quot", "\""}, {"#39", "'"}};
      const auto found = kNames.find(raw.substr(i + 1, end - i - 1));
      if (found == kNames.end()) fail("an unknown reference");
      out += found->second;
      i = end;
    }
    return out;
  }
  PageElement element() {
    expect("<");
    PageElement out;
    out.name = name();
    while (!next_is(">") && !next_is("/>")) {
      expect(" ");
      const std::string key = name();
      expect("=\"");
      if (!out.attributes.emplace(key, plain(until("\""))).second) fail("an attribute twice");
    }
    if (next_is("/>")) {
      at_ += 2;
      return out;
    }
    expect(">");
    while (!next_is("</")) {
      if (at_ >= text_.size()) fail(fmt::format("<{}> is not closed", out.name));
      if (next_is("<")) {
        out.children.push_back(element());
        out.text += out.children.back().text;
      } else {
        const std::size_t end = std::min(text_.find('<', at_), text_.size());
        out.text += plain(std::string(text_.substr(at_, end - at_)));
        at_ = end;
      }
    }
    expect(fmt::format("</{}>", out.name));
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

void collect(const PageElement& element, const std::function<bool(const PageElement&)>& wanted,
             std::vector<const PageElement*>& out) {
  if (wanted(element)) out.push_back(&element);
  for (const PageElement& child : element.children) collect(child, wanted, out);
}

}  // namespace

std::string PageElement::attribute(const std::string& key) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? "" : found->second;
}

bool PageElement::has_class(const std::string& word) const {
  return fmt::format(" {} ", attribute("class")).find(fmt::format(" {} ", word)) !=
         std::string::npos;
}

PageElement read_page(std::string_view page) { return PageParser(page).page(); }

std::vector<const PageElement*> find_all(const PageElement& root,
                                         const std::function<bool(const PageElement&)>& wanted) {
  std::vector<const PageElement*> out;
  collect(root, wanted, out);
  return out;
}

std::vector<const PageElement*> find_all(const PageElement& root, const std::string& name,
                                         const std::string& of_class) {
  return find_all(root, [&](const PageElement& element) {
    return element.name == name && (of_class.empty() || element.has_class(of_class));
  });
}

}  // namespace rk
