//! Pictures of cells. The drawing library is a stand-in: what is tested is what becomes of its files.

use serde_json::{Value, json};

use super::driver::Helper;

/// Open figures and their pictures: `figure(size)` opens one whose PNG has that many bytes.
const PYPLOT: &str = "open_figures = {}\n\
class Figure:\n    def __init__(self, size): self.size = size\n    \
    def savefig(self, file, format): file.write(b'\\x89PNG' + bytes(self.size - 4))\n\
def new(size=10): open_figures[len(open_figures) + 1] = Figure(size)\n\
def get_fignums(): return list(open_figures)\n\
def figure(number): return open_figures[number]\n\
def close(what): open_figures.clear()\n";

fn with_library() -> Helper {
    Helper::start_prepared(|workspace| {
        let library = workspace.join("matplotlib");
        std::fs::create_dir(&library).expect("a library");
        std::fs::write(library.join("__init__.py"), "").expect("a library");
        std::fs::write(library.join("pyplot.py"), PYPLOT).expect("a library");
    })
}

/// A cell's figures and what it printed.
fn drawn(helper: &mut Helper, code: &str) -> (Vec<String>, String, Value) {
    let code = format!("from matplotlib import pyplot as plt\n{code}");
    let (header, body) = helper.call(json!({"call": "python", "code": code}));
    let figures = header["figures"].as_array().expect("a list").iter();
    let figures = figures.map(|name| name.as_str().expect("a name").to_owned()).collect();
    (figures, String::from_utf8(body).expect("text"), header["error"].clone())
}

#[test]
fn open_figures_are_kept_under_names_of_fleets_own_and_closed() {
    let mut helper = with_library();
    let (figures, output, error) = drawn(&mut helper, "plt.new(10); plt.new(20)");
    assert_eq!((output.as_str(), error), ("", Value::Null));
    let sizes: Vec<u64> = figures
        .iter()
        .map(|name| std::fs::metadata(helper.workspace.join(name)).expect("a file").len())
        .collect();
    assert_eq!(sizes, [10, 20]);
    for (name, start) in figures.iter().zip(["figures/cell-1-1-", "figures/cell-1-2-"]) {
        assert!(name.starts_with(start) && name.ends_with(".png"), "{name}");
    }
    assert_eq!(drawn(&mut helper, "").0, Vec::<String>::new());
}

#[test]
fn figures_of_a_cell_that_fails_are_kept() {
    let mut helper = with_library();
    let (figures, _, error) = drawn(&mut helper, "plt.new(); 1 / 0");
    assert_eq!(figures.len(), 1);
    assert!(error.as_str().expect("an error").contains("ZeroDivisionError"), "{error}");
}

#[test]
fn a_cell_has_at_most_twenty_figures_of_ten_mebibytes() {
    let mut helper = with_library();
    let code = "plt.new(10 * 2**20 + 1)\nplt.new(10 * 2**20)\nfor _ in range(22): plt.new()";
    let (figures, output, error) = drawn(&mut helper, code);
    assert_eq!((figures.len(), error), (20, Value::Null));
    assert_eq!(output, "[4 figures left out: at most 20 a cell, 10 MiB each]\n");
    let kept = std::fs::read_dir(helper.workspace.join("figures")).expect("a directory").count();
    assert_eq!(kept, 20);
}

#[test]
fn figures_are_not_written_through_a_link() {
    let mut helper = with_library();
    helper.bash("mkdir elsewhere; ln -s elsewhere figures");
    let (figures, output, error) = drawn(&mut helper, "plt.new()");
    assert_eq!((figures, error), (vec![], Value::Null));
    assert_eq!(output, "[1 figures left out: Not a directory]\n");
    assert_eq!(helper.bash("ls elsewhere"), "");
}

#[test]
fn names_of_figures_that_a_forged_reply_holds_are_not_passed_on() {
    let mut helper = with_library();
    // The interpreter's own descriptors are its to write to.
    let code = "import os, json, struct\n\
        raw = json.dumps({'figures': ['../../etc/passwd', 'figures/../x.png', 'figures/a b.png', 'figures/ok-1.png', 7],\n  \
        'vars': [['a', 'b'], ['c'], 'd', [1, 2]], 'value': 9, 'error': ['x']}).encode()\n\
        for fd in os.listdir('/proc/self/fd'):\n    \
        target = os.readlink('/proc/self/fd/' + fd) if os.path.lexists('/proc/self/fd/' + fd) else ''\n    \
        if int(fd) > 2 and target.startswith('pipe:'):\n        \
        try: os.write(int(fd), struct.pack('>I', len(raw)) + raw)\n        \
        except OSError: pass\n\
        import time; time.sleep(600)";
    let (header, _) = helper.call(json!({"call": "python", "code": code}));
    assert_eq!(
        [&header["figures"], &header["vars"], &header["value"], &header["error"]],
        [&json!(["figures/ok-1.png"]), &json!([["a", "b"]]), &Value::Null, &Value::Null]
    );
}
