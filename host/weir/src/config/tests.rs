use super::*;
#[test]
fn placeholder() {
    let c = parse(
        Path::new("weir.toml"),
        "[connection.a]\nconnector='x'\n[connection.a]\nconnector='y'",
        &|_| None,
    );
    println!("{c:?}");
    let c = parse(
        Path::new("weir.toml"),
        "[connection.a]\nconnector='x'\nauth={bearer='s3cr' 'x'}\nconnector='t'\n a= 12x",
        &|_| None,
    );
    println!("{c:?}");
}
